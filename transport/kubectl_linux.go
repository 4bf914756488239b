package transport

import (
	"os/exec"
	"syscall"
)

// endWithThread makes the kernel end the process with the thread that started it, also when this process is killed.
func endWithThread(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
