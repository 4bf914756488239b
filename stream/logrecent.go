package stream

import (
	"hash/maphash"
	"time"
)

// overlap is how far back a log is read again after its connection broke. Lines of the two outputs may stand in the log
// a little out of order.
const overlap = time.Second

// maxRecent bounds how many lines are remembered because they are later than the server's clock.
const maxRecent = 1 << 15

// recentLines remembers the lines that were given last, by their hashes: those that the server sends again when it is
// asked for what has been written since.
//
// A node's clock may be ahead, or have been so for a moment. To ask for lines since a time that is yet to come would
// leave out what is written until then, so a line counts as no later than the server's clock when it came. Lines that
// are later than that are remembered, up to maxRecent; beyond that the node's clock is believed.
type recentLines struct {
	seed   maphash.Seed
	lines  []givenLine
	last   time.Time // the latest time, where none is later than the server's clock
	newest time.Time // the latest time
}

type givenLine struct {
	stamp time.Time
	hash  uint64
}

// since returns from when on to ask again. Servers cut fractions of a second off.
func (r *recentLines) since() time.Time { return r.last.Truncate(time.Second).Add(-overlap) }

// add notes a line that came when the server's clock showed now; zero if that is unknown.
func (r *recentLines) add(stamp, now time.Time, hash uint64) {
	if stamp.IsZero() {
		return // not a line of the log, but of what reads it
	}
	r.newest = later(r.newest, stamp)
	if now.IsZero() || stamp.Before(now) {
		now = stamp
	}
	r.last = later(r.last, now)
	r.lines = append(r.lines, givenLine{stamp, hash})
	// Forgetting pays once half of them are too old.
	half := len(r.lines) / 2
	if half == 0 || len(r.lines)&(len(r.lines)-1) != 0 {
		return
	}
	if len(r.lines) >= maxRecent || r.lines[half].stamp.Before(r.since()) {
		r.forget()
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (r *recentLines) forget() {
	r.keep(r.since())
	if len(r.lines) >= maxRecent && r.newest.After(r.last) {
		r.last = r.newest
		r.keep(r.since())
	}
}

// keep drops what is older than since.
func (r *recentLines) keep(since time.Time) {
	kept := r.lines[:0]
	for _, line := range r.lines {
		if !line.stamp.Before(since) {
			kept = append(kept, line)
		}
	}
	r.lines = kept
}

// again counts the lines that the server will send again.
func (r *recentLines) again() map[uint64]int {
	r.forget()
	counts := make(map[uint64]int, len(r.lines))
	for _, line := range r.lines {
		counts[line.hash]++
	}
	return counts
}

func (r *recentLines) hash(line []byte) uint64 { return maphash.Bytes(r.seed, line) }
