package transport

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

const (
	maxRetries    = 10
	maxRetryAfter = time.Minute
)

// retryAfter says whether the server asks for another attempt that is worth waiting for, and how long to wait.
func retryAfter(ctx context.Context, response *http.Response, attempt int) (time.Duration, bool) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return 0, false
	}
	seconds, ok := retryAfterSeconds(response)
	wait := time.Duration(seconds) * time.Second
	if !ok || attempt >= maxRetries || wait > maxRetryAfter {
		return 0, false
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		return 0, false
	}
	return wait, true
}

// retryAfterSeconds reads the header's form that API servers use; the other, a date, is not obeyed.
func retryAfterSeconds(response *http.Response) (int, bool) {
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
	return int(seconds), err == nil
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// discard reads what little is left of a body, so that its connection can be used again.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}
