package config

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: one
clusters:
- name: a
  cluster: {server: "https://a.example.com"}
contexts:
- name: one
  context: {cluster: a, user: ann}
- name: two
  context: {cluster: a, user: bob}
users:
- name: ann
  user: {token: a-token}
`

// An empty name, such as that of an unset variable, is neither the current context nor all entries.
func TestConfig_EmptyNames(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // the error
	}{
		"set-context":    {[]string{"set-context", "", "--namespace=other"}, "error: you must specify a non-empty context name or --current\n"},
		"unset contexts": {[]string{"unset", "contexts."}, ""},
		"unset clusters": {[]string{"unset", "clusters."}, ""},
		"unset users":    {[]string{"unset", "users."}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			require.NoError(t, os.WriteFile(path, []byte(twoContexts), 0o600))
			var stdout, stderr bytes.Buffer
			state := &command.State{Streams: command.Streams{Out: &stdout, Err: &stderr}, Connection: flags.NewConnection()}
			defer state.Connection.Close()
			root := command.Root(state, &cobra.Command{Use: "anyctl"}, Commands(state)...)
			root.SetArgs(append([]string{"config", "--kubeconfig", path}, c.args...))
			exit.Report(&stderr, root.ExecuteContext(t.Context()))
			assert.Equal(t, c.want, stderr.String())
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, twoContexts, string(data))
		})
	}
}
