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
)

const (
	// firstDenialGrace is how long Follow and Wait retry 401 and 403 before the server has accepted a request: longer than
	// a starting server returns them, and short enough for a user who lacks the rights. Afterwards it is retry's default.
	firstDenialGrace = 2 * time.Second
	// maxDenialDelay bounds the delay between these requests.
	maxDenialDelay = 500 * time.Millisecond
	// minStableTime is how long a stream must last for the next delay to be short again.
	minStableTime = 10 * time.Second
	// maxDecodeFailures is how many streams from one resourceVersion may fail because of their content before a relist.
	maxDecodeFailures = 3
	// maxUnfinishedWatchLists is how many watches in a row may end within their initial events before a list.
	maxUnfinishedWatchLists = 2
	// watchListRetryInterval is the time after which WatchList is tried again.
	watchListRetryInterval = 5 * time.Minute
	// maxIdleTime is how long a server may send nothing while it owes a response: API servers give up after a minute on a
	// request that is not a watch.
	maxIdleTime = 2 * time.Minute
)

var watchBackoff = retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}

// watchDelay returns the delay after the n-th failure in a row, which ended with err. isFirst shortens it for denials, so
// that a user who lacks the rights does not wait for the error.
func watchDelay(n int, err error, isFirst bool) time.Duration {
	delay := watchBackoff.Delay(n)
	switch {
	case apierrors.IsNotFound(err):
		return min(delay, maxNotServedDelay)
	case isFirst && retry.IsDenied(err):
		return min(delay, maxDenialDelay)
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
		f.watchList.disable() // if the request is invalid for another reason, the list returns that
		return nil
	}
	if apierrors.IsNotFound(err) {
		f.unserved.begin(ctx, f.resource)
	} else {
		f.unserved.end()
	}
	if f.isTerminal(err) {
		return err
	}
	if retry.IsExpired(err) || f.decodeFailures.isExceeded(f.version, err) {
		f.version = ""
	}
	isNotServed := f.unserved.exceedsGrace()
	if isNotServed {
		if stopped := f.handleNotServed(); stopped != nil {
			return stopped
		}
		err = f.notServedError(err)
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
	case f.state == stateInitialList && apierrors.IsNotFound(err):
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

func (w *watchListSupport) disable() { w.retryAt = time.Now().Add(watchListRetryInterval) }

// record records a watch that ended with err, nil if the server closed it, after or within its initial events.
func (w *watchListSupport) record(finished bool, err error) {
	switch {
	case finished:
		*w = watchListSupport{}
	case mayBeCut(err):
		if w.unfinished++; w.unfinished >= maxUnfinishedWatchLists {
			w.disable()
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

// errIdle is an os.ErrDeadlineExceeded, like the time-outs of connections.
var errIdle = fmt.Errorf("the server has sent nothing for %s: %w", maxIdleTime, os.ErrDeadlineExceeded)

// idleTimeout cancels its ctx when the server sends nothing for maxIdleTime. It is stopped while the caller handles an object,
// which may take any time.
type idleTimeout struct {
	*time.Timer
	resource  *Resource
	ctx       context.Context
	cancelCtx context.CancelCauseFunc
}

func (r *Resource) withIdleTimeout(ctx context.Context) (context.Context, *idleTimeout) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &idleTimeout{time.AfterFunc(maxIdleTime, func() { cancel(errIdle) }), r, ctx, cancel}
}

func (t *idleTimeout) cancel() {
	t.Stop()
	t.cancelCtx(nil)
}

// explain returns err, or errIdle if that caused it.
func (t *idleTimeout) explain(err error) error {
	if errors.Is(context.Cause(t.ctx), errIdle) {
		return fmt.Errorf("follow %s: GET %s: %w", t.resource, t.resource.conn.Server(), errIdle)
	}
	return err
}
