package cluster

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/internal/testing/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDump_InterruptedWhileReadingLogs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	api := scripted.New("/v1 pods pod Pod po\n/v1 nodes node Node no - cluster")
	const pods = "/api/v1/namespaces/shop/pods"
	api.Handle("GET "+pods, scripted.JSON(`{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"7"},"items":[
		{"metadata":{"name":"a","namespace":"shop"},"spec":{"containers":[{"name":"app"}]}},
		{"metadata":{"name":"b","namespace":"shop"},"spec":{"containers":[{"name":"app"}]}}]}`))
	api.Handle("GET "+pods+"/a/log", func(http.ResponseWriter, *http.Request) { cancel() })
	server := httptest.NewServer(api)
	defer server.Close()
	var out, stderr bytes.Buffer
	state := &command.State{
		Streams:    command.Streams{Out: &out, Err: &stderr},
		Connection: &flags.Connection{Kubeconfig: os.DevNull, Server: server.URL, NamespaceFlag: "shop"},
	}
	defer state.Connection.Close()
	cmd := dumpCommand(state)
	cmd.SetArgs([]string{"--namespaces=shop"})
	require.ErrorIs(t, cmd.ExecuteContext(ctx), context.Canceled)
	assert.NotContains(t, out.String(), "pod shop/b")
}
