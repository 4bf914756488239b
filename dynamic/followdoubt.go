package dynamic

import (
	"errors"
	"io"
	"time"
)

const (
	// surelyGone is for how long a server must say that it does not serve the resource. One that starts, or is behind
	// others of its cluster, says so for a moment. Its discovery is no better witness: it learns from the same informers.
	surelyGone = 5 * time.Second
	// mostGarbled is how many streams may bring no event at the same place: more would be no better.
	mostGarbled = 3
)

// absence is for how long a server has answered nothing but that it does not serve the resource; the zero absence is one
// that does.
type absence struct{ since time.Time }

// heard takes one more of these answers, and says whether the resource is gone.
func (a *absence) heard() bool {
	if a.since.IsZero() {
		a.since = time.Now()
		return false
	}
	return time.Since(a.since) >= surelyGone
}

// garbled counts streams that came to one resourceVersion and brought something else than an event then: what cannot be
// read, or the error of a server that cannot read it.
type garbled struct {
	version string
	count   int
}

// heard takes what a stream from version ended with, and says whether version leads no further.
func (g *garbled) heard(version string, err error) bool {
	var noEvent *noEventError
	if version == "" || !errors.As(err, &noEvent) {
		return false
	}
	if g.version != version {
		*g = garbled{version: version}
	}
	g.count++
	return g.count >= mostGarbled
}

// noEventError is of what came whole in a stream but is no event.
type noEventError struct{ error }

func (e *noEventError) Unwrap() error { return e.error }

// witness knows whether reading failed.
type witness struct {
	io.Reader
	failed error
}

func (w *witness) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil {
		w.failed = err
	}
	return n, err
}

// clears says of an error in what was read that it is not the connection's.
func (w *witness) clears(err error) bool {
	return !errors.Is(err, io.ErrUnexpectedEOF) && (w.failed == nil || !errors.Is(err, w.failed))
}
