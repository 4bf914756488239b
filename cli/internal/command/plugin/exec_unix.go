//go:build !windows

package plugin

import (
	"fmt"
	"os"
	"syscall"

	"github.com/anykind/anykind/cli/internal/command"
)

// exec replaces the process: signals and the terminal are the plugin's.
func (p *Plugin) exec(*command.State) error {
	err := syscall.Exec(p.Path, append([]string{p.Path}, p.Args...), os.Environ()) //nolint:gosec // the user's own program
	return fmt.Errorf("run plugin %s: %w", p.Path, err)
}
