//go:build !unix

package subprocess

import "os/exec"

// KillGroup does nothing: there are no process groups; Windows has none that end together, short of job objects.
func KillGroup(*exec.Cmd) {}

// HasTerminal returns true: it is not known.
func HasTerminal() bool { return true }
