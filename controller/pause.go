package controller

import (
	"context"
	"math/rand/v2"
	"time"
)

// pause waits for as long as wait and up to half of that more, so that many do not come back at once.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait + rand.N(wait/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// longest is the longest time that pause may wait.
func longest(wait time.Duration) time.Duration { return wait + wait/2 }
