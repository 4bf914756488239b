package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	maxRetries    = 10
	maxRetryAfter = time.Minute
	maxReconnects = 3
)

// minDelay is the least delay between two attempts: a server that asks to come back after 0 seconds is not asked at once.
func minDelay() retry.Backoff { return retry.Backoff{Min: 50 * time.Millisecond, Max: time.Second} }

// retryAfter says whether the server asks for another attempt that is worth waiting for, and how long to wait.
func retryAfter(ctx context.Context, response *http.Response, attempts int) (time.Duration, bool) {
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return 0, false
	}
	seconds, ok := retryAfterSeconds(response)
	wait := max(time.Duration(seconds)*time.Second, minDelay().Delay(attempts))
	if !ok || attempts > maxRetries || wait > maxRetryAfter {
		return 0, false
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		return 0, false
	}
	return retry.Jitter(wait), true
}

// retryAfterSeconds reads the header's form that API servers use; the other, a date, is not obeyed.
func retryAfterSeconds(response *http.Response) (int, bool) {
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
	return int(seconds), err == nil
}

// reconnects says whether the connection broke under a request that can be made again without doing anything twice.
// A server that cannot be reached at all is not asked again: that is an answer.
func (c *call) reconnects(ctx context.Context, err error) bool {
	method := methodOf(c.req)
	return ctx.Err() == nil && c.attempts > 0 && c.attempts <= maxReconnects &&
		(method == http.MethodGet || method == http.MethodHead) && broke(err) && !retry.IsTerminal(err)
}

func broke(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		strings.Contains(err.Error(), "GOAWAY") // net/http keeps the type to itself
}

// discard reads what little is left of a body, so that its connection can be used again.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	_ = body.Close()
}
