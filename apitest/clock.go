package apitest

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Clock is a server's clock, which a test sets, moves and makes wrong: creationTimestamp, deletionTimestamp, the times of managed
// fields and of conditions, and the expiry of tokens follow it. It runs as fast as the clock below it, which is Options.Now. Times that
// clients write themselves, such as those of a Lease, are not the server's: to them a clock that is ahead makes the client's one slow.
// Timers of the server (latency, bookmarks, the end of a watch, grace periods of simulated pods) measure durations and run as before;
// Retry-After is a duration, too. It is safe for concurrent use.
type Clock struct {
	base func() time.Time

	mu     sync.Mutex
	offset time.Duration
	jitter time.Duration
	random *rand.Rand
}

func newClock(base func() time.Time, seed uint64) *Clock {
	return &Clock{base: base, random: rand.New(rand.NewPCG(seed, 1))}
}

// Now returns the server's time.
func (c *Clock) Now() time.Time {
	now := c.base()
	c.mu.Lock()
	defer c.mu.Unlock()
	now = now.Add(c.offset)
	if c.jitter > 0 {
		now = now.Add(time.Duration(c.random.Int64N(2*int64(c.jitter)+1)) - c.jitter)
	}
	return now
}

// Set sets the clock, which runs on from now.
func (c *Clock) Set(now time.Time) {
	base := c.base()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = now.Sub(base)
}

// Jump moves the clock forward, or back by a negative duration, as a correction of a machine's clock does.
func (c *Clock) Jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += by
}

// Skew adds a random error of at most this duration, in either direction, to each reading, as if several servers with clocks of
// their own answered. The errors are drawn from Options.Seed; 0 ends them.
func (c *Clock) Skew(most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jitter = max(0, most)
}

// Clock returns the server's clock.
func (s *Server) Clock() *Clock { return s.clock }
