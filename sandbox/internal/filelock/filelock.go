//go:build unix

// Package filelock locks a file between processes with flock. The system releases a lock at the end of its process, so a crash
// leaves no lock behind.
//
// The holder may remove the lock's file. This is safe because a lock counts only while the path still names the locked file. If
// the file was removed or replaced while it was being locked, the locking process tries again with the new file.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ErrHeld is returned by Try while a different process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// Lock is a held lock.
type Lock struct{ file *os.File }

// Try takes the lock on path or returns ErrHeld. It creates the file and its folder
// if needed.
func Try(path string) (*Lock, error) {
	for {
		file, err := open(path)
		if err != nil {
			return nil, fmt.Errorf("open lock %s: %w", path, err)
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

// maxOpens limits the attempts to open a file while its folder is concurrently removed.
const maxOpens = 1000

// open opens or creates the file and its folder. Both may be removed concurrently.
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

// errRemoved is returned by tryOpen if the path no longer names the file.
var errRemoved = errors.New("the lock's file was removed")

// tryOpen takes the lock on an open file.
func tryOpen(file *os.File) error {
	if err := tryLock(file); err != nil {
		return err
	}
	locked, err := file.Stat()
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	named, err := os.Stat(file.Name())
	if errors.Is(err, os.ErrNotExist) {
		return errRemoved
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	if !os.SameFile(locked, named) {
		return errRemoved
	}
	return nil
}

// IsHeld reports whether a process holds the lock on path. It creates nothing. A
// concurrent Try may return ErrHeld.
func IsHeld(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open lock %s: %w", path, err)
	}
	defer file.Close()
	err = tryShared(file)
	if errors.Is(err, ErrHeld) {
		return true, nil
	}
	return false, err
}

// Unlock releases the lock. The file stays.
func (l *Lock) Unlock() { _ = l.file.Close() }

// Remove removes the file and releases the lock. A waiting process may take the lock as soon as the file is removed, so Remove
// must be the last action under the lock.
func (l *Lock) Remove() error { return errors.Join(os.Remove(l.file.Name()), l.file.Close()) }

// pollInterval is the delay between attempts of Wait: flock takes no context.
const pollInterval = 100 * time.Millisecond

// Wait takes the lock on path. It calls onWait once if it has to wait, and returns ctx's error if ctx ends first.
func Wait(ctx context.Context, path string, onWait func()) (*Lock, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for waited := false; ; {
		lock, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		if !waited && onWait != nil {
			onWait()
			waited = true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
