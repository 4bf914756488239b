// Package pod implements the streaming commands: logs, exec, attach, run, cp, port-forward, proxy and debug.
package pod

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{
		logsCommand(s), execCommand(s), attachCommand(s), runCommand(s), copyCommand(s), portForwardCommand(s), proxyCommand(s), debugCommand(s),
	}
}

// interrupted returns a silent ExitError with code 1 if ctx is done, as in kubectl. Otherwise it returns err.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &exit.Error{Code: 1}
	}
	return err
}
