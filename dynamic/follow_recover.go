package dynamic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/retry"
)

const (
	// firstDenialGrace is the time for retries of 401 and 403 before the server has accepted a request. It exceeds the startup
	// time of a server, and is short enough for a user without permissions. Afterwards the default of package retry applies.
	firstDenialGrace = 2 * time.Second
	// maxGraceDelay bounds the delay between requests within firstDenialGrace and, at the start, within notServedGrace.
	maxGraceDelay = 500 * time.Millisecond
	// minStableTime is the duration of a stream that resets the backoff.
	minStableTime = 10 * time.Second
	// maxDecodeFailures is the number of streams from the same resourceVersion with invalid content before a relist.
	maxDecodeFailures = 3
	// maxUnfinishedWatchLists is the number of consecutive watches cut within their initial events before a list.
	maxUnfinishedWatchLists = 2
	// watchListRetryInterval is the time before WatchList is tried again. ignoredRetryInterval applies after a server has
	// ignored the parameter twice in a row.
	watchListRetryInterval = 5 * time.Minute
	ignoredRetryInterval   = time.Hour
	// maxIdleTime bounds the silence of a server during a response. API servers time out requests other than watches after a
	// minute.
	maxIdleTime = 2 * time.Minute
	// maxInitialIdleTime is maxIdleTime between initial events. API servers send them without a pause within some seconds. A
	// short limit is safe, because a list follows.
	maxInitialIdleTime = 10 * time.Second
)

var watchBackoff = retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}

// watchDelay returns the delay after the n-th consecutive failure, err. With isFirst, denials and 404 have a shorter delay, so
// that the caller gets the error soon.
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

// recover handles the end of a stream: it emits NotServed, chooses between resuming and relisting, and waits before the next
// stream. err is nil if the server closed the stream. Follow ends with the error returned by recover.
func (f *reflector) recover(ctx context.Context, err error, lasted time.Duration) error {
	if ctx.Err() != nil {
		return f.contextError(ctx)
	}
	if f.version == "" && f.watchList.isUsable() && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		f.watchList.disable(watchListRetryInterval) // a request that is invalid in itself fails as a list, too
		return nil
	}
	if apierrors.IsNotFound(err) {
		f.unserved.begin(ctx, f.endpoint)
	} else {
		f.unserved.end()
	}
	isTerminal := f.recordError(err)
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
	if retry.IsExpired(err) || f.decodeFailures.record(f.version, err) {
		f.version = ""
	}
	if err != nil {
		f.lastErr = err
	}
	return f.backOff(ctx, Interruption{Err: err, Relist: f.version == "", NotServed: isNotServed}, lasted)
}

// recordError records denials. It reports whether err ends Follow. After the first Synced no response is terminal, because permissions, credentials
// and resources may return.
func (f *reflector) recordError(err error) (isTerminal bool) {
	denied := f.denials.Record(err)
	switch {
	case f.hasSynced() || denied:
		return false
	case apierrors.IsNotFound(err):
		return f.unserved.exceedsGrace()
	default:
		return retry.IsRejected(err) // ctx has not ended
	}
}

// backOff calls OnInterruption and waits. The delay grows with each consecutive short stream.
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

// contextError returns the error after the end of ctx. Before the first Synced it includes the last error.
func (f *reflector) contextError(ctx context.Context) error {
	if f.hasSynced() || f.lastErr == nil {
		return fmt.Errorf("follow %s: %w", f.endpoint, retry.ContextError(ctx))
	}
	return fmt.Errorf("follow %s: not synced: %w; the last error: %w", f.endpoint, retry.ContextError(ctx), f.lastErr)
}

// decodeFailures counts the streams from the same resourceVersion with invalid content.
type decodeFailures struct {
	version string
	count   int
}

// record counts a stream from version that ended with err. It reports whether the next stream from version would likely fail, too.
func (d *decodeFailures) record(version string, err error) (isExceeded bool) {
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

// watchListSupport records whether WatchList is usable. Some servers reject the parameter, some ignore it and never end the
// initial events, and some proxies cut the stream. The zero value means usable.
type watchListSupport struct {
	unfinished int // consecutive watches
	retryAt    time.Time
}

func (w *watchListSupport) isUsable() bool { return !time.Now().Before(w.retryAt) }

func (w *watchListSupport) disable(interval time.Duration) { w.retryAt = time.Now().Add(interval) }

// record records the result of a watch: whether its initial events finished, and its error, nil if the server closed it.
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

// mayBeCut reports whether an intermediary may have cut or withheld the response: the connection was made, and err is not an
// error response of the server.
func mayBeCut(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return (code == http.StatusBadGateway || code == http.StatusGatewayTimeout) && !retry.IsExpired(err)
	}
	var failed *net.OpError
	return !errors.As(err, &failed) || failed.Op != "dial"
}

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
	endpoint  *endpoint
	ctx       context.Context
	cancelCtx context.CancelCauseFunc
	err       error // returned by explain
	// initialEventsEnd is the deadline for the end of the initial events after an event other than ADDED; zero means no
	// deadline.
	initialEventsEnd time.Time
}

func (e *endpoint) withIdleTimeout(ctx context.Context) (context.Context, *idleTimeout) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(maxIdleTime, func() { cancel(errIdle) })
	return ctx, &idleTimeout{Timer: timer, endpoint: e, ctx: ctx, cancelCtx: cancel, err: errIdle}
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
func (t *idleTimeout) explain(err error) error {
	if errors.Is(context.Cause(t.ctx), errIdle) {
		return fmt.Errorf("follow %s: GET %s: %w", t.endpoint, t.endpoint.conn.Server(), t.err)
	}
	return err
}
