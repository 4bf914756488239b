//go:build unix

// Package filelock locks a file between processes. The system drops a lock with
// the process that holds it, so a crash never leaves one behind.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrHeld is what Try answers while another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// Lock is a held lock.
type Lock struct{ file *os.File }

// Try takes the lock on path, creating the file and its folder as needed, or
// answers ErrHeld at once.
func Try(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening lock %s: %w", path, err)
	}
	if err := tryLock(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Lock{file}, nil
}

// Unlock gives the lock back. The file stays, as removing it would race with
// those about to lock it.
func (l *Lock) Unlock() { _ = l.file.Close() }
