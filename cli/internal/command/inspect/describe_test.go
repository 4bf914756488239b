package inspect

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/internal/testing/scripted"
)

// Without its pods, the claim would be described as unused.
func TestDescribe_InterruptedWhileReadingPods(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	api := scripted.New("/v1 persistentvolumeclaims persistentvolumeclaim PersistentVolumeClaim pvc\n/v1 pods pod Pod po\n/v1 events event Event ev")
	api.Handle("GET /api/v1/namespaces/shop/persistentvolumeclaims/data",
		scripted.JSON(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop"}}`))
	api.Handle("GET /api/v1/namespaces/shop/pods", func(http.ResponseWriter, *http.Request) { cancel() })
	server := httptest.NewServer(api)
	defer server.Close()
	var out bytes.Buffer
	state := &command.State{
		Streams:    command.Streams{Out: &out, Err: &out},
		Connection: &flags.Connection{Kubeconfig: os.DevNull, Server: server.URL, NamespaceFlag: "shop"},
	}
	defer state.Connection.Close()
	cmd := describeCommand(state)
	cmd.SetArgs([]string{"pvc", "data"})
	require.ErrorIs(t, cmd.ExecuteContext(ctx), context.Canceled)
	assert.NotContains(t, out.String(), "Name:")
}
