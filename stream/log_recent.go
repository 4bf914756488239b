package stream

import (
	"hash/maphash"
	"slices"
	"time"
)

const (
	// overlap is the repeated part of a log after a reconnect. Lines of stdout and stderr may be slightly out of order.
	overlap = time.Second
	// maxRecent limits the lines remembered because of a time beyond the server's clock.
	maxRecent = 1 << 15
)

// recentLines remembers the hashes of the last returned lines: the server repeats them in a request from since() on.
//
// A node's clock may be fast. Requesting lines since a future time would omit all lines written until then. The time of a line is
// therefore limited to the server's clock at its arrival. Lines with a later time are remembered, up to maxRecent; beyond that
// the node's clock is trusted.
type recentLines struct {
	seed   maphash.Seed
	lines  []recentLine
	last   time.Time // latest time, limited to the server's clock
	newest time.Time // the latest time
}

type recentLine struct {
	stamp time.Time
	hash  uint64
}

// since returns the start time for a request. Servers truncate to seconds.
func (r *recentLines) since() time.Time { return r.last.Truncate(time.Second).Add(-overlap) }

// add remembers a line. limited is its time by [serverClock.limit].
func (r *recentLines) add(stamp, limited time.Time, hash uint64) {
	if stamp.IsZero() {
		return // an error of the node, not a line of the log
	}
	if stamp.After(r.newest) {
		r.newest = stamp
	}
	if limited.After(r.last) {
		r.last = limited
	}
	r.lines = append(r.lines, recentLine{stamp, hash})
	// Pruning pays once half of the lines are too old. That is checked whenever their number is a power of two.
	n := len(r.lines)
	if n&(n-1) == 0 && (n >= maxRecent || r.lines[n/2].stamp.Before(r.since())) {
		r.prune()
	}
}

// prune drops lines before since(), and trusts the node's clock if too many are left.
func (r *recentLines) prune() {
	since := r.since()
	r.lines = slices.DeleteFunc(r.lines, func(line recentLine) bool { return line.stamp.Before(since) })
	if len(r.lines) >= maxRecent && r.newest.After(r.last) {
		r.last = r.newest
		r.prune()
	}
}

// counts returns the number of expected repetitions of each line.
func (r *recentLines) counts() map[uint64]int {
	r.prune()
	counts := make(map[uint64]int, len(r.lines))
	for _, line := range r.lines {
		counts[line.hash]++
	}
	return counts
}

func (r *recentLines) hash(line []byte) uint64 { return maphash.Bytes(r.seed, line) }
