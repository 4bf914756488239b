package transport

import (
	"os"
	"os/exec"
	"syscall"
)

// killChildrenToo does nothing: Windows has no process groups that end together, short of job objects.
func killChildrenToo(*exec.Cmd) {}

func hasTerminal() bool { return true }

// stdinIsTerminal says whether there is somebody to type.
func stdinIsTerminal() bool { return isTerminal(os.Stdin) }

func isTerminal(file *os.File) bool {
	var mode uint32
	return syscall.GetConsoleMode(syscall.Handle(file.Fd()), &mode) == nil
}
