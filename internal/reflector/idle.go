package reflector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

const (
	// maxIdleTime bounds the silence of a server during a response. API servers time out requests other than watches after a
	// minute.
	maxIdleTime = 2 * time.Minute
	// maxInitialIdleTime is maxIdleTime between initial events. API servers send them without a pause within some seconds. A
	// short limit is safe, because a list follows.
	maxInitialIdleTime = 10 * time.Second
)

// Both wrap os.ErrDeadlineExceeded, like timeouts of connections.
var (
	errIdle              = fmt.Errorf("the server has sent nothing for %s: %w", maxIdleTime, os.ErrDeadlineExceeded)
	errInitialEventsIdle = fmt.Errorf("the server has not ended the initial events for %s (it may ignore sendInitialEvents): %w",
		maxInitialIdleTime, os.ErrDeadlineExceeded)
)

// errWatchOverdue is the error of a watch that lasts longer than requested.
var errWatchOverdue = fmt.Errorf("the server has not ended the watch in time: %w", context.DeadlineExceeded)

// idleTimeout cancels its ctx when the server sends nothing for maxIdleTime, or maxInitialIdleTime between initial events. It
// is stopped while the caller handles an object, so that the caller may be slow. The ctx of a watch also ends at a fixed time: a
// second ctx and a second timer for that would take 0.7 kB of each watch.
type idleTimeout struct {
	timer     *time.Timer
	isRunning bool
	awaitsEnd bool      // only end is left
	end       time.Time // zero for a list
	ctx       context.Context
	cancelCtx context.CancelCauseFunc
	err       error // returned by explain
	// initialEventsEnd is the deadline for the end of the initial events after an event other than ADDED; zero means no
	// deadline.
	initialEventsEnd time.Time
}

// withIdleTimeout returns a ctx with a timeout. The ctx ends at end at the latest, unless end is zero.
func withIdleTimeout(ctx context.Context, end time.Time) (context.Context, *idleTimeout) {
	t := &idleTimeout{isRunning: true, end: end, err: errIdle}
	t.ctx, t.cancelCtx = context.WithCancelCause(ctx)
	t.timer = time.AfterFunc(t.untilEnd(maxIdleTime), t.expire)
	return t.ctx, t
}

// untilEnd returns d, or the time until end if it is shorter.
func (t *idleTimeout) untilEnd(d time.Duration) time.Duration {
	if t.end.IsZero() {
		return d
	}
	return min(d, time.Until(t.end))
}

func (t *idleTimeout) expire() {
	if !t.end.IsZero() && !time.Now().Before(t.end) {
		t.cancelCtx(errWatchOverdue)
		return
	}
	t.cancelCtx(errIdle)
}

func (t *idleTimeout) stop() {
	if t.isRunning {
		t.isRunning = false
		t.timer.Stop()
	}
}

func (t *idleTimeout) reset(d time.Duration) {
	t.isRunning = true
	t.timer.Reset(t.untilEnd(d))
}

// awaitEnd leaves only the end of a watch: nothing is sent while nothing changes.
func (t *idleTimeout) awaitEnd() {
	if !t.awaitsEnd {
		t.awaitsEnd = true
		t.isRunning = false
		t.timer.Reset(time.Until(t.end))
	}
}

func (t *idleTimeout) cancel() {
	t.timer.Stop()
	t.cancelCtx(nil)
}

// awaitInitialEvent resets the timeout to maxInitialIdleTime. received is the type of the last event. After the first event
// other than ADDED, the deadline is fixed: a server that ignores sendInitialEvents may send changes forever.
func (t *idleTimeout) awaitInitialEvent(received watch.EventType) {
	until := time.Now().Add(maxInitialIdleTime)
	if received != watch.Added && t.initialEventsEnd.IsZero() {
		t.initialEventsEnd = until
	}
	if !t.initialEventsEnd.IsZero() {
		until = t.initialEventsEnd
	}
	t.err = errInitialEventsIdle
	t.reset(time.Until(until))
}

// explain returns the idle timeout's error if the timeout caused err. Otherwise it returns err.
func (r *Reflector[T]) explain(idle *idleTimeout, err error) error {
	switch cause := context.Cause(idle.ctx); {
	case errors.Is(cause, errIdle):
		return r.Source.IdleError(idle.err)
	case errors.Is(cause, errWatchOverdue):
		return r.Source.IdleError(cause)
	default:
		return err
	}
}
