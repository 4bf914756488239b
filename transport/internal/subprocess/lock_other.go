//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package subprocess

import (
	"io/fs"
	"os"
)

// tryLock does nothing: there are no file locks.
func tryLock(*os.File) error { return nil }

// isPrivate returns false: without locks no directory is swept.
func isPrivate(fs.FileInfo) bool { return false }

// killProcesses does nothing: see KillGroup.
func killProcesses(string) {}
