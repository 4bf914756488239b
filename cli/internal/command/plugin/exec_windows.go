package plugin

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
)

// exec runs the plugin and returns its exit code as an exit.Error.
func (p *Plugin) exec(s *command.State) error {
	program := exec.Command(p.Path, p.Args...)
	program.Stdin = s.In
	program.Stdout = s.Out
	program.Stderr = s.Err
	err := program.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended):
		return &exit.Error{Code: ended.ExitCode()}
	}
	return fmt.Errorf("run plugin %s: %w", p.Path, err)
}
