package portconn

import (
	"sync"
	"time"
)

// deadline is a movable point in time with a channel to wait for it.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	passed chan struct{} // closed while the deadline has passed
}

func newDeadline() *deadline { return &deadline{passed: make(chan struct{})} }

// set moves the deadline; the zero time means none.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.passed // the timer's function is running, and closes it
	}
	d.timer = nil
	if isClosed(d.passed) {
		d.passed = make(chan struct{})
	}
	passed := d.passed
	if wait := time.Until(at); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(passed) })
	} else if !at.IsZero() {
		close(passed)
	}
}

// wait returns a channel for a single wait. It is closed when the deadline passes.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// signal wakes the current or next goroutine waiting on c, a channel of capacity one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
