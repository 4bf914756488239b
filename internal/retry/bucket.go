package retry

import (
	"sync"
	"time"
)

// Bucket is a token bucket of at most max(Burst, 1) tokens. It starts full and gains a token in each Interval; with an Interval
// of 0 it is always full. It is safe for concurrent use.
type Bucket struct {
	Burst    int
	Interval time.Duration

	mu   sync.Mutex
	next time.Time // time of the next token for an empty bucket
}

// Reserve takes n tokens and returns the delay until all n are available.
func (b *Bucket) Reserve(n int) time.Duration { return b.reserve(n, true) }

// Allow reports whether n tokens are available, and takes them if so.
func (b *Bucket) Allow(n int) bool { return b.reserve(n, false) == 0 }

// reserve returns the delay until n tokens are available. It takes them if the delay is 0 or ahead is set.
func (b *Bucket) reserve(n int, ahead bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if earliest := now.Add(-time.Duration(max(b.Burst, 1)-1) * b.Interval); b.next.Before(earliest) {
		b.next = earliest
	}
	delay := max(b.next.Add(time.Duration(n-1)*b.Interval).Sub(now), 0)
	if delay == 0 || ahead {
		b.next = b.next.Add(time.Duration(n) * b.Interval)
	}
	return delay
}
