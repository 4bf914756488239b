//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package subprocess

import (
	"io/fs"
	"os"
	"syscall"
)

// tryLock locks a file until this process closes it or ends. It returns an error if the file is already locked.
func tryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a descriptor is an int
}

// isPrivate reports whether a directory belongs to this user and permits nobody else to enter it.
func isPrivate(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm() == 0o700
}

// killProcesses kills all processes with a command-line argument, except this process.
func killProcesses(argument string) {
	for _, pid := range processesWith(argument) {
		if pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}
