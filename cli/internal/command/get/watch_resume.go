package get

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	minWatchBackoff = 200 * time.Millisecond
	maxWatchBackoff = 10 * time.Second
	// lastingWatch is the shortest duration of a watch without a backoff.
	lastingWatch = 10 * time.Second
)

// watchBackoff is the delay between the end of a watch and the next request. It doubles with each short watch.
type watchBackoff struct{ delay time.Duration }

// wait waits after a watch, or until ctx ends. lasted is the duration of the watch.
func (b *watchBackoff) wait(ctx context.Context, lasted time.Duration) error {
	if lasted >= lastingWatch {
		b.delay = 0
		return ctx.Err()
	}
	b.delay = min(max(2*b.delay, minWatchBackoff), maxWatchBackoff)
	jitter := time.Duration(rand.Int64N(int64(b.delay) / 2)) //nolint:gosec // no secret
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(b.delay - jitter):
		return nil
	}
}

// brokenWatchError is an error of the connection, or of a server that restarts or is overloaded.
type brokenWatchError struct{ err error }

func (e *brokenWatchError) Error() string { return e.err.Error() }
func (e *brokenWatchError) Unwrap() error { return e.err }

// brokenWatch wraps an error after which the watch is resumed.
func brokenWatch(err error) error {
	var status apierrors.APIStatus
	var network *net.OpError
	switch {
	case errors.As(err, &status):
		if code := status.Status().Code; code != http.StatusTooManyRequests && code < http.StatusInternalServerError {
			return err
		}
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded): // --request-timeout
		return err
	case !errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF):
		return err
	}
	return &brokenWatchError{err}
}
