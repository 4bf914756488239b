// Package pod has the commands that open streams: logs, exec, attach, cp, port-forward and proxy.
package pod

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{
		logsCommand(s), execCommand(s), attachCommand(s), copyCommand(s), portForwardCommand(s), proxyCommand(s),
	}
}

// interrupted returns the error of a command that an interrupt has ended: as in kubectl it ends with exit code 1, in silence.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &command.ExitError{Code: 1}
	}
	return err
}
