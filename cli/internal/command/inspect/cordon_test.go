package inspect

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/internal/testing/scripted"
)

// scriptedState returns a state with a connection to a scripted server, in the namespace shop, and its output.
func scriptedState(t *testing.T, api http.Handler) (state *command.State, stdout, stderr *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	stdout = &bytes.Buffer{}
	stderr = &bytes.Buffer{}
	state = &command.State{
		Streams:    command.Streams{Out: stdout, Err: stderr},
		Connection: &flags.Connection{Kubeconfig: os.DevNull, Server: server.URL, NamespaceFlag: "shop"},
	}
	t.Cleanup(state.Connection.Close)
	return state, stdout, stderr
}

// A blank selector, such as that of an unset variable, does not select all nodes.
func TestNodes_BlankSelector(t *testing.T) {
	api := scripted.New("cluster /v1 nodes node Node no\n/v1 pods pod Pod po\napps/v1 daemonsets daemonset DaemonSet ds")
	api.Handle("GET /api/v1/nodes", scripted.JSON(`{"apiVersion":"v1","kind":"NodeList","metadata":{"resourceVersion":"9"},
		"items":[{"metadata":{"name":"one"}}]}`))
	for name, build := range map[string]func(*command.State) *cobra.Command{"cordon": cordonCommand, "uncordon": uncordonCommand, "drain": drainCommand} {
		for _, selector := range []string{"--selector=", "--selector= ", "--where= "} {
			t.Run(name+selector, func(t *testing.T) {
				state, stdout, stderr := scriptedState(t, api)
				cmd := build(state)
				cmd.SetArgs([]string{selector, "--dry-run=client"})
				require.ErrorContains(t, cmd.ExecuteContext(t.Context()), "USAGE:")
				assert.Empty(t, stdout.String()+stderr.String())
			})
		}
	}
}

func TestCordon_InterruptedIsNoSuccess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	api := scripted.New("cluster /v1 nodes node Node no")
	for _, name := range []string{"one", "two"} {
		api.Handle("GET /api/v1/nodes/"+name, scripted.JSON(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+name+`"}}`))
	}
	api.Handle("PATCH /api/v1/nodes/one", func(http.ResponseWriter, *http.Request) { cancel() })
	state, stdout, stderr := scriptedState(t, api)
	cmd := cordonCommand(state)
	cmd.SetArgs([]string{"one", "two"})
	require.ErrorIs(t, cmd.ExecuteContext(ctx), context.Canceled)
	assert.Empty(t, stdout.String()+stderr.String())
}
