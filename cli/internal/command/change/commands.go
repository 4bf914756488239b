// Package change implements the writing commands: create, apply, replace, delete, edit, patch, set, label, annotate, scale, wait and
// rollout.
package change

import (
	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{
		createCommand(s),
		applyCommand(s),
		deleteCommand(s),
		editCommand(s),
		replaceCommand(s),
		patchCommand(s),
		setCommand(s),
		labelCommand(s),
		annotateCommand(s),
		scaleCommand(s),
		waitCommand(s),
		rolloutCommand(s),
	}
}
