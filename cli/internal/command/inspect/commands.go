// Package inspect implements describe, tree, who, auth, drain, cordon and uncordon.
package inspect

import (
	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{
		describeCommand(s), treeCommand(s), ownersCommand(s), authCommand(s), drainCommand(s), cordonCommand(s), uncordonCommand(s),
	}
}
