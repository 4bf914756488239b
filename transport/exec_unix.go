//go:build unix

package transport

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// killChildrenToo makes the program's end by ctx that of the processes that it started, unless they left its group.
func killChildrenToo(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// hasTerminal says whether this process has a terminal that the program could open.
func hasTerminal() bool {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = terminal.Close()
	return true
}

// stdinIsTerminal says whether there is somebody to type. No other character device than /dev/null is usual there.
func stdinIsTerminal() bool { return isTerminal(os.Stdin) }

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
