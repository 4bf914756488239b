//go:build unix

package filelock

import (
	"context"
	"errors"
	"time"
)

// pollInterval is how often Wait looks again; flock cannot be waited for with a
// context.
const pollInterval = 100 * time.Millisecond

// Wait takes the lock on path, calling waiting once if another process holds it.
// It ends with ctx's error when ctx ends first.
func Wait(ctx context.Context, path string, waiting func()) (*Lock, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for said := false; ; {
		lock, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		if !said && waiting != nil {
			waiting()
			said = true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
