package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

const (
	lockPatience = 10 * time.Second
	lockInterval = 20 * time.Millisecond
)

// lock makes the files that keep kubectl and other Edits away from path and from what it links to, and returns how to
// remove them. Sorted, so that two Edits of two names cannot wait for each other.
func lock(ctx context.Context, path, target string) (unlock func() error, err error) {
	files := []string{path + ".lock", target + ".lock"}
	slices.Sort(files)
	files = slices.Compact(files)

	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	var held []string
	unlock = func() error {
		var failed []error
		for _, file := range held {
			// Somebody who thought it was left behind may have deleted it.
			if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
			}
		}
		return errors.Join(failed...)
	}
	for _, file := range files {
		if err := lockOne(ctx, file); err != nil {
			return nil, errors.Join(err, unlock())
		}
		held = append(held, file)
	}
	return unlock, nil
}

func lockOne(ctx context.Context, file string) error {
	again := time.NewTicker(lockInterval)
	defer again.Stop()
	for {
		// Mode 0 and O_EXCL, as kubectl's.
		made, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0)
		if err == nil {
			return made.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("lock it: %w", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			cause := ctx.Err()
			if given := context.Cause(ctx); !errors.Is(given, cause) {
				cause = fmt.Errorf("%w: %w", cause, given)
			}
			return fmt.Errorf("another program holds its lock: if none is running, delete %s: %w", file, cause)
		}
	}
}
