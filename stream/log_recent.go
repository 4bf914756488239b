package stream

import (
	"hash/maphash"
	"slices"
	"time"
)

const (
	// overlap is how far back a log is read again after a reconnect. Lines of the two outputs may be slightly out of order.
	overlap = time.Second
	// maxRecent limits how many lines are remembered because they are later than the server's clock.
	maxRecent = 1 << 15
)

// recentLines remembers the hashes of the lines that were returned last: those that the server repeats in a request for
// lines since then.
//
// A node's clock may be fast. Requesting lines since a time in the future would omit what is written until then, so a line
// counts as no later than the server's clock when it arrived. Lines later than that are remembered, up to maxRecent; beyond
// that the node's clock is trusted.
type recentLines struct {
	seed   maphash.Seed
	lines  []recentLine
	last   time.Time // the latest time, none later than the server's clock
	newest time.Time // the latest time
}

type recentLine struct {
	stamp time.Time
	hash  uint64
}

// since returns since when to request lines. Servers truncate to seconds.
func (r *recentLines) since() time.Time { return r.last.Truncate(time.Second).Add(-overlap) }

// add remembers a line. limited is its time by [serverClock.limit].
func (r *recentLines) add(stamp, limited time.Time, hash uint64) {
	if stamp.IsZero() {
		return // not a line of the log, but an error of the node
	}
	if stamp.After(r.newest) {
		r.newest = stamp
	}
	if limited.After(r.last) {
		r.last = limited
	}
	r.lines = append(r.lines, recentLine{stamp, hash})
	// Pruning pays once half of them are too old, which is looked at whenever their number is a power of two.
	n := len(r.lines)
	if n&(n-1) == 0 && (n >= maxRecent || r.lines[n/2].stamp.Before(r.since())) {
		r.prune()
	}
}

// prune drops lines that are too old, and trusts the node's clock if too many are left.
func (r *recentLines) prune() {
	since := r.since()
	r.lines = slices.DeleteFunc(r.lines, func(line recentLine) bool { return line.stamp.Before(since) })
	if len(r.lines) >= maxRecent && r.newest.After(r.last) {
		r.last = r.newest
		r.prune()
	}
}

// counts returns how often the server will repeat each line.
func (r *recentLines) counts() map[uint64]int {
	r.prune()
	counts := make(map[uint64]int, len(r.lines))
	for _, line := range r.lines {
		counts[line.hash]++
	}
	return counts
}

func (r *recentLines) hash(line []byte) uint64 { return maphash.Bytes(r.seed, line) }
