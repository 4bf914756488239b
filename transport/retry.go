package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/anykind/anykind/internal/retry"
)

const (
	maxRetries    = 10
	maxRetryAfter = time.Minute
	maxReconnects = 3
	// maxDiscard limits the bytes read from a body to reuse its connection.
	maxDiscard = 64 << 10
)

// minDelay is the minimum delay between two attempts, including Retry-After: 0.
func minDelay() retry.Backoff { return retry.Backoff{Min: 50 * time.Millisecond, Max: time.Second} }

// prepareRetry waits or renews the credential before the next attempt. Without a next attempt it returns the call's error, and
// closes the response.
func (c *call) prepareRetry(ctx context.Context, response *http.Response, err error) error {
	switch {
	case err != nil:
		if !c.isRetryable(ctx, err) {
			return err
		}
		c.delay = retry.Jitter(ctx, minDelay().Delay(c.attempts))
	case response.StatusCode == http.StatusUnauthorized && c.credential != nil:
		return c.prepareRenewed(ctx, response)
	default:
		delay, ok := c.retryDelay(ctx, response)
		if !ok {
			return statusError(response)
		}
		discard(response.Body)
		c.delay = delay
	}
	if err := retry.Sleep(ctx, c.delay); err != nil {
		return fmt.Errorf("%s: wait for a retry: %w", c.req.target(c.conn), err)
	}
	return nil
}

// retryDelay returns the delay of a retry requested by the server. ok is false without such a request, after 5xx other than 503
// for a request other than a read, and for a delay beyond maxRetryAfter or, with its jitter, beyond ctx's deadline.
func (c *call) retryDelay(ctx context.Context, response *http.Response) (delay time.Duration, ok bool) {
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
	case code < http.StatusInternalServerError, !c.req.isRead():
		return 0, false
	}
	seconds, ok := retryAfterSeconds(response)
	delay = max(time.Duration(seconds)*time.Second, minDelay().Delay(c.attempts))
	if !ok || c.attempts > maxRetries || delay > maxRetryAfter {
		return 0, false
	}
	delay = retry.Jitter(ctx, delay)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < delay {
		return 0, false
	}
	return delay, true
}

// retryAfterSeconds parses the seconds form of the header, as used by API servers; a date is ignored.
func retryAfterSeconds(response *http.Response) (int, bool) {
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
	return int(seconds), err == nil
}

// isRetryable reports whether the connection broke under a request that changes nothing. An unreachable server is not retried.
func (c *call) isRetryable(ctx context.Context, err error) bool {
	return ctx.Err() == nil && c.attempts > 0 && c.attempts <= maxReconnects &&
		c.req.isRead() && isBroken(err) && !retry.IsTerminal(err)
}

// isBroken reports whether an established connection broke.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		strings.Contains(err.Error(), "GOAWAY") // net/http does not export the type
}

// discard closes a body after reading a short rest, to reuse its connection.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, maxDiscard)
	_ = body.Close()
}
