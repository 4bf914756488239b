//go:build unix

package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

func tryLock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		default:
			return fmt.Errorf("locking %s: %w", file.Name(), err)
		}
	}
}
