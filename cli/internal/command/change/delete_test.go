package change

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/internal/testing/scripted"
)

func TestDelete_WaitWithoutTimeLeft(t *testing.T) {
	server := httptest.NewServer(scripted.New("/v1 configmaps configmap ConfigMap cm"))
	defer server.Close()
	connection := &flags.Connection{Kubeconfig: os.DevNull, Server: server.URL, NamespaceFlag: "shop"}
	defer connection.Close()
	handle, err := connection.Handle(t.Context(), "cm")
	require.NoError(t, err)
	begun := []deleted{{target: &resource.Info{Resource: handle, Name: "one"}}, {target: &resource.Info{Resource: handle, Name: "two"}}}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		timeout time.Duration
		begun   []deleted
		want    string
	}{
		"timeout of one":   {t.Context(), time.Nanosecond, begun[:1], "timed out waiting for the condition on configmaps/one"},
		"timeout of two":   {t.Context(), time.Nanosecond, begun, "exit code 1"},
		"interrupt of one": {interrupted, 0, begun[:1], "context canceled"},
		"interrupt of two": {interrupted, 0, begun, "exit code 130"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			state := &command.State{Streams: command.Streams{Out: &stderr, Err: &stderr}, Connection: connection}
			require.EqualError(t, (&deleteOptions{timeout: c.timeout}).awaitAll(c.ctx, state, c.begun), c.want)
			if len(c.begun) > 1 {
				assert.Contains(t, stderr.String(), `0 of 2 objects gone; not gone: configmaps "one", configmaps "two"`)
			}
		})
	}
}
