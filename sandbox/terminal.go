//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"unsafe"
)

// lendTerminal makes cmd the terminal's foreground job if this process is it, so
// that cmd can read from the terminal and alone gets its Ctrl-C. The returned
// function takes the terminal back.
func lendTerminal(cmd *exec.Cmd) (giveBack func()) {
	fd := int(os.Stdin.Fd())
	if foregroundGroup(fd) != syscall.Getpgrp() {
		return func() {}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: fd}
	return func() {
		// Taking it back from the background would stop this process.
		signal.Ignore(syscall.SIGTTOU)
		defer signal.Reset(syscall.SIGTTOU)
		group := int32(syscall.Getpgrp())
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&group)))
	}
}

// foregroundGroup is the process group in the foreground of terminal fd, or -1.
func foregroundGroup(fd int) int {
	var group int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	if errno != 0 {
		return -1
	}
	return int(group)
}
