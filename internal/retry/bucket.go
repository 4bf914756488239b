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
func (b *Bucket) Reserve(n int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	delay := b.delay(n)
	b.next = b.next.Add(time.Duration(n) * b.Interval)
	return delay
}

// Allow takes n tokens if all of them are there, and reports that.
func (b *Bucket) Allow(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.delay(n) > 0 {
		return false
	}
	b.next = b.next.Add(time.Duration(n) * b.Interval)
	return true
}

func (b *Bucket) delay(n int) time.Duration {
	now := time.Now()
	if earliest := now.Add(-time.Duration(max(b.Burst, 1)-1) * b.Interval); b.next.Before(earliest) {
		b.next = earliest
	}
	return max(b.next.Add(time.Duration(n-1)*b.Interval).Sub(now), 0)
}
