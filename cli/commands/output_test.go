package commands_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/commands"
	"github.com/anykind/anykind/cli/flags"
)

// withoutOutput lists the commands without -o json by the reason. A command that changes objects or a kubeconfig must have the flag.
var withoutOutput = map[string][]string{
	"prints the help of its subcommands": {
		"anyctl", "auth", "certificate", "config", "create secret", "create service", "crd", "kuberc", "plugin", "rollout", "top",
	},
	"only reads": {
		"api-versions", "auth can-i", "cluster-info", "config current-context", "config get-clusters", "config get-contexts", "config get-users", "describe",
		"diff", "logs", "plugin list", "rollout status", "status", "top node", "top pod", "tree",
	},
	"prints a text or an object for other commands": {"completion", "new"},
	"streams data or runs a program":                {"attach", "cp", "exec", "port-forward", "proxy"},
	"writes no object: anyctl-copy has its flags":   {"copy", "crd check", "rehearse"},
	"writes kubectl's preferences, a local file":    {"kuberc set"},
}

func TestCommands_ChangesHaveOutput(t *testing.T) {
	root := &cobra.Command{Use: "anyctl"}
	_, err := commands.New(root, flags.NewConnection(), nil)
	require.NoError(t, err)
	reasons := map[string]string{}
	for reason, paths := range withoutOutput {
		for _, path := range paths {
			require.NotContains(t, reasons, path, "listed twice")
			reasons[path] = reason
		}
	}
	for cmd := range walk(root) {
		path := strings.TrimPrefix(cmd.CommandPath(), "anyctl ")
		output := cmd.Flags().ShorthandLookup("o")
		hasJSON := output != nil && output.Name == "output" && strings.Contains(output.Usage, "json")
		reason, isListed := reasons[path]
		delete(reasons, path)
		assert.NotEqual(t, hasJSON, isListed, "%s: -o json: %t, listed with the reason %q", path, hasJSON, reason)
	}
	assert.Empty(t, reasons, "commands that do not exist")
}

// walk yields a command and its subcommands.
func walk(cmd *cobra.Command) func(yield func(*cobra.Command) bool) {
	return func(yield func(*cobra.Command) bool) {
		if !yield(cmd) {
			return
		}
		for _, sub := range cmd.Commands() {
			for found := range walk(sub) {
				if !yield(found) {
					return
				}
			}
		}
	}
}
