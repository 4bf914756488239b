package retry

import (
	"sync"
	"time"
)

// Bucket is a token bucket: it has Burst tokens at first and at most, at least 1, and gets one in each Interval; without
// an Interval it never lacks any. It is safe for concurrent use.
type Bucket struct {
	Burst    int
	Interval time.Duration

	mu   sync.Mutex
	next time.Time // when the next token would be there if nothing was saved up
}

// Reserve takes n tokens and returns the delay until all of them are there.
func (b *Bucket) Reserve(n int) time.Duration { return b.reserve(n, true) }

// Allow takes n tokens if all of them are there, and reports that.
func (b *Bucket) Allow(n int) bool { return b.reserve(n, false) == 0 }

// reserve returns the delay until n tokens are there, and takes them if they are there or ahead is set.
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
