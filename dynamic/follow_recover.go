package dynamic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/anykind/anykind/internal/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// stableAfter is how long a stream must last for the next delay to be short again.
	stableAfter = 10 * time.Second
	// firstDenialGrace is for how long 401 and 403 are retried before the server has accepted a request: longer than a
	// starting server returns them, and short enough for a user who lacks the rights.
	firstDenialGrace = 2 * time.Second
	// maxDenialDelay bounds the delay between these requests, so that a user who lacks the rights is told soon.
	maxDenialDelay = 500 * time.Millisecond
)

func followBackoff() retry.Backoff {
	return retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
}

// recovery is what a reflector remembers of errors.
type recovery struct {
	interruptions  int
	failures       int // streams in a row that did not last
	denials        retry.Denials
	absence        absence
	definition     *definition
	decodeFailures decodeFailures
	watchList      watchList
	lastErr        error
}

// recover decides how to go on after a stream that lasted so long and ended with err, nil where the server closed it. An
// error that it returns ends Follow.
func (f *reflector[T, P]) recover(ctx context.Context, err error, lasted time.Duration) error {
	if ctx.Err() != nil {
		return f.ended(ctx)
	}
	if f.version == "" && !f.watchList.unusable() && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		f.watchList.reject() // if the request is wrong otherwise, the list reports that
		return nil
	}
	if apierrors.IsNotFound(err) {
		f.absence.begin(ctx, f.resource)
	} else {
		f.absence.end()
	}
	if f.isTerminal(err) {
		return err
	}
	if retry.IsExpired(err) || f.decodeFailures.note(f.version, err) {
		f.version = ""
	}
	if f.absence.exceeded() {
		if err = f.handleNotServed(ctx, err); errors.Is(err, errStopped) {
			return err
		}
	}
	if err != nil {
		f.lastErr = err
	}
	return f.backOff(ctx, Interruption{Err: err, Relist: f.version == "", NotServed: f.absence.exceeded()}, lasted)
}

// isTerminal reports whether err ends Follow. After the first Synced nothing does that the server answers: rights,
// credentials and resources come back.
func (f *reflector[T, P]) isTerminal(err error) bool {
	var refused *RefusedError
	if f.started || f.hasSynced {
		f.denials.Grace = 0
	} else {
		f.denials.Grace = firstDenialGrace
	}
	denied := f.denials.Transient(err)
	switch {
	case errors.As(err, &refused):
		return true
	case f.hasSynced || denied:
		return false
	case f.started && apierrors.IsNotFound(err):
		return f.absence.exceeded()
	default:
		return retry.IsRejected(err) // ctx has not ended
	}
}

// handleNotServed reports that the resource is not served, once, and emits the deletion of all objects if its definition
// is deleted. It returns err with the reason why objects are kept.
func (f *reflector[T, P]) handleNotServed(ctx context.Context, err error) error {
	if f.started { // and not if it was reported before another error
		if err := f.emitNotServed(); err != nil {
			return err
		}
	}
	if len(f.known.objects) > 0 && time.Since(f.absence.read) >= definitionInterval {
		f.absence.read = time.Now()
		deleted, reason := f.definition.isDeleted(ctx)
		f.absence.reason = reason
		if deleted {
			if err := f.forgetAll(); err != nil {
				return err
			}
		}
	}
	if len(f.known.objects) > 0 {
		return fmt.Errorf("follow %s: not served, its objects are kept: %w (%s)", f.resource, err, f.absence.reason)
	}
	return fmt.Errorf("follow %s: not served: %w", f.resource, err)
}

// backOff waits before the next stream, the longer the more streams in a row did not last.
func (f *reflector[T, P]) backOff(ctx context.Context, i Interruption, lasted time.Duration) error {
	if lasted >= stableAfter {
		f.failures = 0
	}
	if i.Err != nil || lasted < time.Second {
		f.failures++
		i.Wait = followBackoff().Delay(f.failures)
	}
	switch {
	case apierrors.IsNotFound(i.Err):
		i.Wait = min(i.Wait, maxAbsenceDelay)
	case !f.hasSynced && retry.IsDenied(i.Err):
		i.Wait = min(i.Wait, maxDenialDelay)
	}
	if seconds, asked := apierrors.SuggestsClientDelay(i.Err); asked {
		i.Wait = max(i.Wait, time.Duration(seconds)*time.Second)
	}
	f.interruptions++
	i.Count = f.interruptions
	if f.opts.Interrupted != nil {
		f.opts.Interrupted(i)
	}
	if i.Wait == 0 {
		return nil
	}
	served, err := f.absence.wait(ctx, retry.Jitter(i.Wait))
	if err != nil {
		return f.ended(ctx)
	}
	if served {
		f.failures = 0
	}
	return nil
}

// ended is the error of a ctx that ended, with what kept the reflector from its first Synced.
func (f *reflector[T, P]) ended(ctx context.Context) error {
	if f.hasSynced || f.lastErr == nil {
		return fmt.Errorf("follow %s: %w", f.resource, retry.ContextError(ctx))
	}
	return fmt.Errorf("follow %s: %w; it could not begin: %w", f.resource, retry.ContextError(ctx), f.lastErr)
}

const (
	// maxUnfinished is how many streams in a row may end within their initial list.
	maxUnfinished = 2
	// watchListRetry is after what time a server is tried again that could not send all objects with a watch.
	watchListRetry = 5 * time.Minute
)

// watchList remembers whether the server can start a watch with all objects. Some reject the parameter, some ignore it
// and never end the initial list, and proxies may cut a stream before its end. The zero value is that it can.
type watchList struct {
	unfinished int
	retryAt    time.Time
}

// unusable reports whether to list by pages.
func (w *watchList) unusable() bool { return time.Now().Before(w.retryAt) }

func (w *watchList) reject() { w.retryAt = time.Now().Add(watchListRetry) }

func (w *watchList) succeeded() { *w = watchList{} }

// failed counts a stream that ended with err, nil where the server closed it, within its initial list.
func (w *watchList) failed(err error) {
	if !isCut(err) {
		return
	}
	w.unfinished++
	if w.unfinished >= maxUnfinished {
		w.reject()
	}
}

// isCut reports whether err may be that of a response that was cut or withheld by something between client and server.
// It is not, if the server answered with an error or no connection was made.
func isCut(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return (code == http.StatusBadGateway || code == http.StatusGatewayTimeout) && !retry.IsExpired(err)
	}
	var failed *net.OpError
	return !errors.As(err, &failed) || failed.Op != "dial"
}
