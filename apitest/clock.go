package apitest

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Clock is the clock of a server. A test can move and skew it. The clock determines creationTimestamp, deletionTimestamp,
// the times of managed fields and conditions, and the expiry of tokens. It advances with Options.Now.
//
// Times written by clients, such as renewTime of a Lease, do not follow it: to a server with a fast clock, the client's clock
// looks slow. Timers of the server (latency, bookmarks, watch timeouts, grace periods of simulated pods) and Retry-After are
// durations and not affected. Clock is safe for concurrent use.
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

// Jump moves the clock forward, or backward by a negative duration, like a correction of a machine's clock.
func (c *Clock) Jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += by
}

// Skew adds a random error between -most and +most to each reading, as if several servers with different clocks responded. The
// errors are drawn from Options.Seed. 0 ends them.
func (c *Clock) Skew(most time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jitter = max(0, most)
}

// Clock returns the server's clock.
func (s *Server) Clock() *Clock { return s.clock }
