//go:build !unix

package rehearsal

import "os/exec"

// interruptGroup leaves the default: the program is killed at the end of its context.
func interruptGroup(*exec.Cmd) (kill func()) { return func() {} }
