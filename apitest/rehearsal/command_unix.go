//go:build unix

package rehearsal

import (
	"os/exec"
	"syscall"
)

// interruptGroup starts a program in a process group, and interrupts the group at the end of its context: programs such as `go run`
// have children. kill ends the rest of the group.
func interruptGroup(cmd *exec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}
