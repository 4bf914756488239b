// Package get implements the reading commands: get, events, api-resources, api-versions, version and completion.
package get

import (
	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{
		newGet(s), newEvents(s), newAPIResources(s), newAPIVersions(s), newVersion(s), newCompletion(s),
	}
}
