package dynamic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// longestSilence is how long a server may be silent where it owes an answer: API servers themselves give up after a
// minute on a request that is no watch.
const longestSilence = 2 * time.Minute

// errSilent is an os.ErrDeadlineExceeded, as time-outs of connections are.
var errSilent = fmt.Errorf("the server has sent nothing for %s: %w", longestSilence, os.ErrDeadlineExceeded)

// alarm ends what is read under its ctx when the server is silent for too long. It rests while the caller has something in
// hand, who may take his time.
type alarm struct {
	of    *Resource
	ctx   context.Context
	stop  context.CancelCauseFunc
	timer *time.Timer
}

// listen sets an alarm.
func (r *Resource) listen(ctx context.Context) (context.Context, *alarm) {
	ctx, stop := context.WithCancelCause(ctx)
	return ctx, &alarm{r, ctx, stop, time.AfterFunc(longestSilence, func() { stop(errSilent) })}
}

func (a *alarm) set()  { a.timer.Reset(longestSilence) }
func (a *alarm) rest() { a.timer.Stop() }

func (a *alarm) end() {
	a.rest()
	a.stop(nil)
}

// explain is err, or that the server was silent where that is why.
func (a *alarm) explain(err error) error {
	if errors.Is(context.Cause(a.ctx), errSilent) {
		return fmt.Errorf("follow %s: GET %s: %w", a.of, a.of.conn.Server(), errSilent)
	}
	return err
}
