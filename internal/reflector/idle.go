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

// idleTimeout cancels its ctx when the server sends nothing for maxIdleTime, or maxInitialIdleTime between initial events. It
// is stopped while the caller handles an object, so that the caller may be slow.
type idleTimeout struct {
	*time.Timer
	ctx       context.Context
	cancelCtx context.CancelCauseFunc
	err       error // returned by explain
	// initialEventsEnd is the deadline for the end of the initial events after an event other than ADDED; zero means no
	// deadline.
	initialEventsEnd time.Time
}

func withIdleTimeout(ctx context.Context) (context.Context, *idleTimeout) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(maxIdleTime, func() { cancel(errIdle) })
	return ctx, &idleTimeout{Timer: timer, ctx: ctx, cancelCtx: cancel, err: errIdle}
}

func (t *idleTimeout) cancel() {
	t.Stop()
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
	t.Reset(time.Until(until))
}

// explain returns the idle timeout's error if the timeout caused err. Otherwise it returns err.
func (r *Reflector[T]) explain(idle *idleTimeout, err error) error {
	if errors.Is(context.Cause(idle.ctx), errIdle) {
		return r.Source.IdleError(idle.err)
	}
	return err
}
