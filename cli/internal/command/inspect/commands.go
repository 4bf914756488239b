// Package inspect implements describe, explain, new, tree, who, status, auth, drain, cordon and uncordon.
package inspect

import (
	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/applysets"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{
		describeCommand(s), newCommand(s), explainCommand(s), treeCommand(s), ownersCommand(s), applysets.StatusCommand(s), authCommand(s), drainCommand(s), cordonCommand(s), uncordonCommand(s),
	}
}
