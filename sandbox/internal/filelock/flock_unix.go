//go:build unix

package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

func tryLock(file *os.File) error { return flock(file, syscall.LOCK_EX) }

// tryShared takes a shared lock. It excludes only tryLock's exclusive lock.
func tryShared(file *os.File) error { return flock(file, syscall.LOCK_SH) }

func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		default:
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		}
	}
}
