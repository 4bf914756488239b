package dynamic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/anykind/anykind/internal/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// firstDenialGrace is how long Follow and Wait retry 401 and 403 before the server has accepted a request: longer than
	// a starting server returns them, and short enough for a user who lacks the rights. Afterwards it is retry's default.
	firstDenialGrace = 2 * time.Second
	// maxGraceDelay bounds the delay between requests within firstDenialGrace and, at the start, within notServedGrace.
	maxGraceDelay = 500 * time.Millisecond
	// minStableTime is how long a stream must last for the next delay to be short again.
	minStableTime = 10 * time.Second
	// maxDecodeFailures is how many streams from one resourceVersion may fail because of their content before a relist.
	maxDecodeFailures = 3
	// maxUnfinishedWatchLists is how many watches in a row may end within their initial events before a list.
	maxUnfinishedWatchLists = 2
	// watchListRetryInterval is the time after which WatchList is tried again. ignoredRetryInterval applies once a server has
	// ignored the parameter twice in a row.
	watchListRetryInterval = 5 * time.Minute
	ignoredRetryInterval   = time.Hour
	// maxIdleTime is how long a server may send nothing while it owes a response: API servers give up after a minute on a
	// request that is not a watch.
	maxIdleTime = 2 * time.Minute
	// maxInitialIdleTime is maxIdleTime between initial events. API servers send them without a pause and end them within
	// some seconds. A list follows, so that it may be short.
	maxInitialIdleTime = 10 * time.Second
)

var watchBackoff = retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}

// watchDelay returns the delay after the n-th failure in a row, which ended with err. isFirst shortens it for
// denials and 404, so that the caller does not wait long for the error.
func watchDelay(n int, err error, isFirst bool) time.Duration {
	delay := watchBackoff.Delay(n)
	switch {
	case isFirst && (retry.IsDenied(err) || apierrors.IsNotFound(err)):
		return min(delay, maxGraceDelay)
	case apierrors.IsNotFound(err):
		return min(delay, maxNotServedDelay)
	default:
		return delay
	}
}

// recover handles the end of a stream: it waits before the next one, chooses between resuming and relisting, and reports
// NotServed. err is nil if the server closed the stream. Follow ends with the error that recover returns.
func (f *reflector) recover(ctx context.Context, err error, lasted time.Duration) error {
	if ctx.Err() != nil {
		return f.contextError(ctx)
	}
	if f.version == "" && f.watchList.isUsable() && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		f.watchList.disable(watchListRetryInterval) // if the request is invalid for another reason, the list returns that
		return nil
	}
	if apierrors.IsNotFound(err) {
		f.unserved.begin(ctx, f.resource)
	} else {
		f.unserved.end()
	}
	isTerminal := f.isTerminal(err)
	isNotServed := f.unserved.exceedsGrace()
	if isNotServed && !isTerminal {
		if stopped := f.handleNotServed(); stopped != nil {
			return stopped
		}
	}
	if isNotServed {
		err = f.notServedError(err)
	}
	if isTerminal {
		return err
	}
	if retry.IsExpired(err) || f.decodeFailures.isExceeded(f.version, err) {
		f.version = ""
	}
	if err != nil {
		f.lastErr = err
	}
	return f.backOff(ctx, Interruption{Err: err, Relist: f.version == "", NotServed: isNotServed}, lasted)
}

// isTerminal reports whether err ends Follow. After the first Synced no response of the server does, since permissions,
// credentials and resources may return.
func (f *reflector) isTerminal(err error) bool {
	denied := f.denials.Transient(err)
	switch {
	case f.hasSynced() || denied:
		return false
	case apierrors.IsNotFound(err):
		return f.unserved.exceedsGrace()
	default:
		return retry.IsRejected(err) // ctx has not ended
	}
}

// backOff calls OnInterruption and waits, longer after each stream in a row that did not last.
func (f *reflector) backOff(ctx context.Context, i Interruption, lasted time.Duration) error {
	if lasted >= minStableTime {
		f.failures = 0
	}
	if i.Err != nil || lasted < time.Second {
		f.failures++
		i.Delay = watchDelay(f.failures, i.Err, !f.hasSynced())
	}
	if seconds, ok := apierrors.SuggestsClientDelay(i.Err); ok {
		i.Delay = max(i.Delay, time.Duration(seconds)*time.Second)
	}
	f.interruptions++
	i.Count = f.interruptions
	if f.opts.OnInterruption != nil {
		f.opts.OnInterruption(i)
	}
	isServedAgain, err := f.unserved.wait(ctx, retry.Jitter(ctx, i.Delay))
	if err != nil {
		return f.contextError(ctx)
	}
	if isServedAgain {
		f.failures = 0
	}
	return nil
}

// contextError returns the error of a ctx that has ended, with the error that prevented the first Synced.
func (f *reflector) contextError(ctx context.Context) error {
	if f.hasSynced() || f.lastErr == nil {
		return fmt.Errorf("follow %s: %w", f.resource, retry.ContextError(ctx))
	}
	return fmt.Errorf("follow %s: not synced: %w; the last error: %w", f.resource, retry.ContextError(ctx), f.lastErr)
}

// decodeFailures counts the streams from one resourceVersion that failed because of their content.
type decodeFailures struct {
	version string
	count   int
}

// isExceeded counts the stream from version that ended with err, and reports whether another one from there would most
// likely fail, too.
func (d *decodeFailures) isExceeded(version string, err error) bool {
	var invalid *invalidEventError
	if version == "" || !errors.As(err, &invalid) {
		return false
	}
	if d.version != version {
		*d = decodeFailures{version: version}
	}
	d.count++
	return d.count >= maxDecodeFailures
}

// watchListSupport records whether a watch can begin with all objects. Some servers reject the parameter, some ignore it and
// never end the initial events, and some proxies cut the stream before. The zero value is that it can.
type watchListSupport struct {
	unfinished int // watches in a row
	retryAt    time.Time
}

func (w *watchListSupport) isUsable() bool { return !time.Now().Before(w.retryAt) }

func (w *watchListSupport) disable(interval time.Duration) { w.retryAt = time.Now().Add(interval) }

// record records a watch that ended with err, nil if the server closed it, after or within its initial events.
func (w *watchListSupport) record(finished bool, err error) {
	switch {
	case finished:
		*w = watchListSupport{}
	case errors.Is(err, errInitialEventsIdle):
		w.unfinished++
		if w.unfinished < maxUnfinishedWatchLists {
			w.disable(watchListRetryInterval)
		} else {
			w.disable(ignoredRetryInterval)
		}
	case mayBeCut(err):
		if w.unfinished++; w.unfinished >= maxUnfinishedWatchLists {
			w.disable(watchListRetryInterval)
		}
	}
}

// mayBeCut reports whether something between client and server may have cut or withheld the response that ended with err:
// the connection was made, and the server did not answer with an error.
func mayBeCut(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return (code == http.StatusBadGateway || code == http.StatusGatewayTimeout) && !retry.IsExpired(err)
	}
	var failed *net.OpError
	return !errors.As(err, &failed) || failed.Op != "dial"
}

// Each is an os.ErrDeadlineExceeded, like the time-outs of connections.
var (
	errIdle              = fmt.Errorf("the server has sent nothing for %s: %w", maxIdleTime, os.ErrDeadlineExceeded)
	errInitialEventsIdle = fmt.Errorf("the server has not ended the initial events for %s (it may ignore sendInitialEvents): %w",
		maxInitialIdleTime, os.ErrDeadlineExceeded)
)

// idleTimeout cancels its ctx when the server sends nothing for maxIdleTime, or maxInitialIdleTime between initial events.
// It is stopped while the caller handles an object, which may take any time.
type idleTimeout struct {
	*time.Timer
	resource  *Resource
	ctx       context.Context
	cancelCtx context.CancelCauseFunc
	err       error // of explain
	// initialEventsEnd is when the initial events of a watch that has sent a change must have ended; zero for none.
	initialEventsEnd time.Time
}

func (r *Resource) withIdleTimeout(ctx context.Context) (context.Context, *idleTimeout) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(maxIdleTime, func() { cancel(errIdle) })
	return ctx, &idleTimeout{Timer: timer, resource: r, ctx: ctx, cancelCtx: cancel, err: errIdle}
}

func (t *idleTimeout) cancel() {
	t.Stop()
	t.cancelCtx(nil)
}

// awaitInitialEvent expects an initial event, or their end, within maxInitialIdleTime. After received, an event that is not
// ADDED, only their end is left: a server that ignores sendInitialEvents may send changes for ever.
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

// explain returns err, or the error of the idle timeout if that caused it.
func (t *idleTimeout) explain(err error) error {
	if errors.Is(context.Cause(t.ctx), errIdle) {
		return fmt.Errorf("follow %s: GET %s: %w", t.resource, t.resource.conn.Server(), t.err)
	}
	return err
}
