//go:build !unix && !windows

package transport

import (
	"os"
	"os/exec"
)

func killChildrenToo(*exec.Cmd) {}

func hasTerminal() bool { return true }

func stdinIsTerminal() bool { return isTerminal(os.Stdin) }

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
