package dynamic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// maxSilence is how long a server may be silent where it owes an answer: API servers themselves give up after a minute
// on a request that is no watch.
const maxSilence = 2 * time.Minute

// errSilent is an os.ErrDeadlineExceeded, as time-outs of connections are.
var errSilent = fmt.Errorf("the server has sent nothing for %s: %w", maxSilence, os.ErrDeadlineExceeded)

// idleTimeout cancels what is read under its ctx when the server is silent for too long. It is paused while the caller
// handles an object, which may take any time.
type idleTimeout struct {
	of    *Resource
	ctx   context.Context
	stop  context.CancelCauseFunc
	timer *time.Timer
}

// limitSilence starts an idleTimeout.
func (r *Resource) limitSilence(ctx context.Context) (context.Context, *idleTimeout) {
	ctx, stop := context.WithCancelCause(ctx)
	return ctx, &idleTimeout{r, ctx, stop, time.AfterFunc(maxSilence, func() { stop(errSilent) })}
}

func (t *idleTimeout) resume() { t.timer.Reset(maxSilence) }
func (t *idleTimeout) pause()  { t.timer.Stop() }

func (t *idleTimeout) end() {
	t.pause()
	t.stop(nil)
}

// explain returns err, or errSilent where that is its cause.
func (t *idleTimeout) explain(err error) error {
	if errors.Is(context.Cause(t.ctx), errSilent) {
		return fmt.Errorf("follow %s: GET %s: %w", t.of, t.of.conn.Server(), errSilent)
	}
	return err
}
