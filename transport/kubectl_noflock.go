//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package transport

import (
	"io/fs"
	"os"
)

// tryLock takes no lock: folders that killed programs left are not removed here.
func tryLock(*os.File) error { return nil }

// isPrivate reports false, so that no folder is removed: whether its owner lives is not known.
func isPrivate(fs.FileInfo) bool { return false }

// killProcesses does nothing: see killChildrenToo.
func killProcesses(string) {}
