package dynamic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const firstPause = 100 * time.Millisecond

// pause sleeps before the n-th attempt after the first, as long as backOff says.
func pause(ctx context.Context, n int, longest time.Duration) error {
	return sleep(ctx, backOff(n, longest))
}

// backOff is, for the n-th time, twice as long as for the one before it, until that is longest.
func backOff(n int, longest time.Duration) time.Duration {
	if n >= 16 {
		return longest
	}
	return min(firstPause<<(n-1), longest)
}

// sleep waits, up to half as long again, so that many clients do not come back at once.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait + rand.N(wait/2)) //nolint:gosec // spread, not secrecy
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return endOf(ctx)
	}
}

// endOf is the error of a ctx that has ended, with its cause.
func endOf(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}
