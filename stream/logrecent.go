package stream

import (
	"hash/maphash"
	"time"
)

// overlap is how far back a log is read again after its connection broke. Lines of the two outputs may stand in the log
// a little out of order.
const overlap = time.Second

// recentLines knows the lines that were given last, by their hashes: those that the server sends again when it is asked
// for what has been written since.
type recentLines struct {
	lines []givenLine
	last  time.Time
}

type givenLine struct {
	stamp time.Time
	hash  uint64
}

// since is from when on to ask again. Servers cut fractions of a second off.
func (r *recentLines) since() time.Time { return r.last.Truncate(time.Second).Add(-overlap) }

func (r *recentLines) add(stamp time.Time, hash uint64) {
	if stamp.IsZero() {
		return // not a line of the log, but of what reads it
	}
	if stamp.After(r.last) {
		r.last = stamp
	}
	r.lines = append(r.lines, givenLine{stamp, hash})
	// To forget is worth its while once half of them are too old.
	if half := len(r.lines) / 2; half > 0 && len(r.lines)&(len(r.lines)-1) == 0 && r.lines[half].stamp.Before(r.since()) {
		r.forget()
	}
}

func (r *recentLines) forget() {
	since, kept := r.since(), r.lines[:0]
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

// logSeed is the process's own.
var logSeed = maphash.MakeSeed()

func lineHash(line []byte) uint64 { return maphash.Bytes(logSeed, line) }
