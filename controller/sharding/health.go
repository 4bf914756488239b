package sharding

import (
	"slices"
	"time"

	"github.com/anykind/anykind/shard"
)

// Health is the state of a group, as this process knows it.
type Health struct {
	// Member is the name of this process's Lease, or "" while it has none. It changes when the process has lost its Lease.
	Member string
	// Members are the names of the live members in ascending order. The first one plans.
	Members []string
	// Ranges are the hashes that this process works on. Segments to be handed over are not included.
	Ranges shard.Ranges
	// Gained and Released count segments taken over and handed over. Lost counts the segments taken from this process: the Lease or the
	// assignment was deleted.
	Gained, Released, Lost int
	// Remaining is the time until the work must end without a further renewal. It is negative after that.
	Remaining time.Duration
	// Unowned is the time during which a segment of the group had no live owner, since this process joined. It begins with the last
	// observed renewal of a dead owner.
	Unowned time.Duration
	// Err is the error of the last renewal, or nil.
	Err error
}

func (h Health) isSame(as Health) bool {
	return h.Member == as.Member && slices.Equal(h.Members, as.Members) && slices.Equal(h.Ranges, as.Ranges)
}

// Share returns the part of all hashes that this process works on, between 0 and 1.
func (h Health) Share() float64 { return h.Ranges.Share() }

// Health returns the current state.
func (g *Group) Health() Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	health := g.health
	health.Member = g.member
	health.Ranges = slices.Clone(g.held)
	health.Remaining = g.deadline.Remaining()
	health.Err = g.lastErr
	return health
}
