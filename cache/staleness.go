package cache

import (
	"context"
	"fmt"
	"time"
)

// progressTime is the time of a stream's last progress from the server: the arrival of an event, of a bookmark, or of the end of a list.
// The acceptance of a resumed watch is progress without news: the changes since its resourceVersion are still to come.
type progressTime struct {
	at         time.Time // zero before the initial list
	isResuming bool      // the next progress at the same resourceVersion is an acceptance
}

// record records progress from a resourceVersion to the next.
func (p *progressTime) record(last, current string) {
	isAccepted := p.isResuming && last == current
	p.isResuming = false
	if !isAccepted {
		p.at = time.Now()
	}
}

// since returns the time since at, with the time of a suspended machine. The wall clock may be set back, and the monotonic clock may
// stop during a suspension.
func since(at time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)))
}

// Staleness returns the time since the last progress of the cache's stream: an event, or a bookmark, which API servers send about once a
// minute while nothing changes. With Options.Namespaces or Options.Shard it is the maximum of the streams. Rejected namespaces do not
// count. It is unknown before the initial list.
//
// It is the time since an arrival. The state may be older: by the delay of the network and of the server's own watch cache, and by what
// a resumed watch still has to deliver. It may also be current: an object without an event may be unchanged. It counts the time of a
// suspended machine, and a wall clock set forward until the next progress.
func (c *Cache[T]) Staleness() (staleness time.Duration, isKnown bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.staleness()
}

// staleness is Staleness for callers that hold the lock.
func (c *Cache[T]) staleness() (oldest time.Duration, isKnown bool) {
	for _, s := range c.streams {
		if s.rejected != nil {
			continue
		}
		if s.progressed.at.IsZero() {
			return 0, false
		}
		oldest = max(oldest, since(s.progressed.at))
	}
	return oldest, true
}

// WaitForStaleness waits until the staleness of the cache, as of the call, is at most limit. With 0 it waits for the next progress, so
// for a minute or so while nothing changes. See [Cache.Staleness] for what it means, and [Cache.WaitForWrites] to read own writes. If
// ctx or Run ends first, the error has the staleness.
func (c *Cache[T]) WaitForStaleness(ctx context.Context, limit time.Duration) error {
	start := time.Now()
	isFresh := func() bool {
		staleness, isKnown := c.staleness()
		return isKnown && !c.isListing() && staleness <= limit+since(start)
	}
	err := c.wait(ctx, &waiter{condition: isFresh, atProgress: true}, "stale")
	if err == nil {
		return nil
	}
	staleness, isKnown := c.Staleness()
	if !isKnown {
		return fmt.Errorf("%w (nothing has been received)", err)
	}
	return fmt.Errorf("%w (the last progress was %s ago, and at most %s was required)", err, staleness, limit)
}
