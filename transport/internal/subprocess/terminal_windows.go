package subprocess

import (
	"os"
	"syscall"
)

// IsTerminal reports whether a file is a console.
func IsTerminal(file *os.File) bool {
	var mode uint32
	return syscall.GetConsoleMode(syscall.Handle(file.Fd()), &mode) == nil
}
