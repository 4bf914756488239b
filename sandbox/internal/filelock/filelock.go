//go:build unix

// Package filelock locks a file between processes. The system drops a lock with
// the process that holds it, so a crash never leaves one behind.
//
// A lock's file may be removed by its holder, which is safe because the lock on a
// file counts only while the path still names that file: who gets the lock on a file
// that was removed, or replaced, meanwhile tries again with the new one.
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
	for {
		file, err := open(path)
		if err != nil {
			return nil, fmt.Errorf("opening lock %s: %w", path, err)
		}
		err = tryOpen(file)
		if err == nil {
			return &Lock{file}, nil
		}
		_ = file.Close()
		if !errors.Is(err, errRemoved) {
			return nil, err
		}
	}
}

// maxOpens is how often a folder may be removed before it is opened.
const maxOpens = 1000

// open opens or creates the file and its folder, which others may remove meanwhile.
func open(path string) (*os.File, error) {
	for try := 1; ; try++ {
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			var file *os.File
			if file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644); err == nil {
				return file, nil
			}
		}
		removed := errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist)
		if !removed || try == maxOpens {
			return nil, err
		}
	}
}

// errRemoved is what tryOpen answers when the path no longer names the file.
var errRemoved = errors.New("the lock's file was removed")

// tryOpen takes the lock on an open file.
func tryOpen(file *os.File) error {
	if err := tryLock(file); err != nil {
		return err
	}
	locked, err := file.Stat()
	if err != nil {
		return fmt.Errorf("locking %s: %w", file.Name(), err)
	}
	named, err := os.Stat(file.Name())
	if errors.Is(err, os.ErrNotExist) {
		return errRemoved
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", file.Name(), err)
	}
	if !os.SameFile(locked, named) {
		return errRemoved
	}
	return nil
}

// IsHeld reports whether a process holds the lock on path. It creates nothing. A Try
// at the same moment may answer ErrHeld.
func IsHeld(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening lock %s: %w", path, err)
	}
	defer file.Close()
	err = tryShared(file)
	if errors.Is(err, ErrHeld) {
		return true, nil
	}
	return false, err
}

// Unlock gives the lock back. The file stays.
func (l *Lock) Unlock() { _ = l.file.Close() }

// Remove removes the file and gives the lock back. Another process may hold the lock
// as soon as the file is gone, so nothing that the lock protects may follow.
func (l *Lock) Remove() error { return errors.Join(os.Remove(l.file.Name()), l.file.Close()) }
