package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/retry"
)

const (
	// firstDenialGrace is the default of Options.FirstDenialGrace. It exceeds the startup time of a server, and is short enough
	// for a user without permissions.
	firstDenialGrace = 2 * time.Second
	// maxGraceDelay bounds the delay between requests within firstDenialGrace and, at the start, within notServedGrace.
	maxGraceDelay = 500 * time.Millisecond
	// maxNotServedDelay bounds the delay between requests while the resource is not served.
	maxNotServedDelay = 2 * time.Second
	// defaultMaxDelay is the default of Options.MaxDelay.
	defaultMaxDelay = 5 * time.Second
	// relistSpread bounds the random time before a relist of a synced reflector whose resourceVersion has expired. A restart of the
	// server or a compaction expires those of many clients at once.
	relistSpread = 2 * time.Second
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
)

// Interruption describes why a stream ended and how Run recovers.
type Interruption struct {
	Err       error         // nil if the server closed the stream
	Relist    bool          // all objects are read again
	Delay     time.Duration // before the next request, without jitter and spread
	Count     int           // of interruptions, including this one
	NotServed bool          // 404 has exceeded its grace
}

// InvalidEventError reports invalid content on a working connection: undecodable bytes, or the Status of a server
// with an undecodable stored object.
type InvalidEventError struct{ Err error }

func (e *InvalidEventError) Error() string { return e.Err.Error() }

func (e *InvalidEventError) Unwrap() error { return e.Err }

// delay returns the delay after the n-th consecutive failure, err. Denials and 404 have a shorter delay while they may be terminal,
// so that the caller gets the error soon.
func (r *Reflector[T]) delay(n int, err error) time.Duration {
	delay := retry.Backoff{Min: 100 * time.Millisecond, Max: cmp.Or(r.MaxDelay, defaultMaxDelay)}.Delay(n)
	switch {
	case r.MaxDelay != 0:
		return delay
	case (r.IsTerminal != nil || !r.hasSynced()) && (retry.IsDenied(err) || apierrors.IsNotFound(err)):
		return min(delay, maxGraceDelay)
	case apierrors.IsNotFound(err):
		return min(delay, maxNotServedDelay)
	default:
		return delay
	}
}

// recover handles the end of a stream: it emits NotServed, chooses between resuming and relisting, and waits before the next
// stream. err is nil if the server closed the stream. Run returns the error of recover.
func (r *Reflector[T]) recover(ctx context.Context, err error, lasted time.Duration) error {
	if ctx.Err() != nil {
		return r.contextError(ctx)
	}
	if errors.Is(err, errRelistRequested) {
		r.version = ""
		r.pages = true
		r.interrupt(Interruption{Err: err, Relist: true})
		return nil
	}
	if r.version == "" && r.usesWatchList() && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		r.watchList.disable(watchListRetryInterval) // a request that is invalid in itself fails as a list, too
		return nil
	}
	if apierrors.IsNotFound(err) {
		r.unserved.begin(ctx, r.Evidence)
	} else {
		r.unserved.end()
	}
	if r.recordError(err) {
		return err
	}
	isNotServed := r.unserved.exceedsGrace()
	if isNotServed {
		if stopped := r.handleNotServed(); stopped != nil {
			return stopped
		}
	}
	if retry.IsExpired(err) || r.decodeFailures.record(r.version, err) {
		r.version = ""
	}
	if err != nil {
		r.lastErr = err
	}
	return r.backOff(ctx, Interruption{Err: err, Relist: r.version == "", NotServed: isNotServed}, lasted)
}

// recordError records denials. It reports whether err ends Run.
func (r *Reflector[T]) recordError(err error) (isTerminal bool) {
	denied := r.denials.Record(err)
	switch {
	case denied || apierrors.IsNotFound(err) && !r.unserved.exceedsGrace():
		return false
	case r.IsTerminal != nil:
		return r.IsTerminal(err)
	default:
		return !r.hasSynced() && retry.IsRejected(err) // ctx has not ended
	}
}

// backOff calls OnInterruption and waits. The delay grows with each consecutive short stream.
func (r *Reflector[T]) backOff(ctx context.Context, i Interruption, lasted time.Duration) error {
	if lasted >= minStableTime {
		r.failures = 0
	}
	if i.Err != nil || lasted < time.Second {
		r.failures++
		i.Delay = r.delay(r.failures, i.Err)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(i.Err); ok {
		i.Delay = max(i.Delay, time.Duration(seconds)*time.Second)
	}
	r.interrupt(i)
	delay := retry.Jitter(ctx, i.Delay)
	if r.state == synced && retry.IsExpired(i.Err) {
		delay += retry.Random(ctx, relistSpread)
	}
	isServedAgain, err := r.unserved.wait(ctx, delay)
	if err != nil {
		return r.contextError(ctx)
	}
	if isServedAgain {
		r.failures = 0
	}
	return nil
}

// interrupt counts an interruption and calls OnInterruption.
func (r *Reflector[T]) interrupt(i Interruption) {
	r.interruptions++
	i.Count = r.interruptions
	if r.OnInterruption != nil {
		r.OnInterruption(i)
	}
}

// contextError returns the error after the end of ctx. Before the first Synced it includes the last error.
func (r *Reflector[T]) contextError(ctx context.Context) error {
	if r.hasSynced() || r.lastErr == nil {
		return retry.ContextError(ctx)
	}
	return fmt.Errorf("not synced: %w; the last error: %w", retry.ContextError(ctx), r.lastErr)
}

// decodeFailures counts the streams from the same resourceVersion with invalid content.
type decodeFailures struct {
	version string
	count   int
}

// record counts a stream from version that ended with err. It reports whether the next stream from version would likely fail, too.
func (d *decodeFailures) record(version string, err error) (isExceeded bool) {
	var invalid *InvalidEventError
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
