package plugin

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

// extensible is the command with subcommands by plugins, as in kubectl.
const extensible = "create"

// Run runs the plugin of a command line that names no command of root. It reports whether there is such a plugin. On Unix systems the
// plugin replaces the process, and Run returns only with an error.
func Run(s *command.State, root *cobra.Command) (found bool, err error) {
	args := s.Args
	if len(args) == 0 {
		return false, nil
	}
	switch args[0] {
	case "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
		return false, nil
	}
	cmd, rest, err := root.Find(args)
	if err != nil || isBuiltIn(cmd, rest) && cmd != root {
		return false, nil //nolint:nilerr // the command line's own error follows
	}
	minWords := len(args) - len(rest) + 1
	if isFlag(args[0]) {
		if name := AfterFlags(args); name != "" {
			return true, fmt.Errorf("flags cannot be placed before plugin name: %s", args[0])
		}
		return false, nil
	}
	plugin := Find(args, minWords)
	if plugin == nil {
		return false, nil
	}
	return true, plugin.exec(s)
}

// isBuiltIn reports whether a command with its further arguments leaves no place for a plugin.
func isBuiltIn(cmd *cobra.Command, rest []string) bool {
	return cmd.Name() != extensible || len(rest) == 0 || isFlag(rest[0])
}
