package flags

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// withRequestTimeout returns a wrapper that calls wrap, which may be nil, and adds a timeout.
func withRequestTimeout(wrap func(http.RoundTripper) http.RoundTripper, timeout time.Duration) func(http.RoundTripper) http.RoundTripper {
	add := timeoutTransport(timeout)
	if wrap == nil {
		return add
	}
	return func(next http.RoundTripper) http.RoundTripper { return add(wrap(next)) }
}

// timeoutTransport returns a wrapper with a timeout for requests and their response bodies, like http.Client.Timeout. Upgraded
// connections have no timeout.
func timeoutTransport(timeout time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(req *http.Request) (*http.Response, error) {
			cause := &timeoutError{timeout: timeout}
			ctx, cancel := context.WithTimeoutCause(req.Context(), timeout, cause)
			response, err := next.RoundTrip(req.WithContext(ctx))
			if err != nil {
				cancel()
				if errors.Is(context.Cause(ctx), cause) {
					err = cause
				}
				return nil, err
			}
			if response.StatusCode == http.StatusSwitchingProtocols {
				context.AfterFunc(req.Context(), cancel)
				return response, nil
			}
			response.Body = &cancelBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel, cause: cause}
			return response, nil
		})
	}
}

// WithRequestTimeout returns ctx with the timeout of --request-timeout, for a stream that reconnects: kubectl's ends with its request.
// Without a timeout it returns ctx.
func (c *Connection) WithRequestTimeout(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if _, err := c.Config(ctx); err != nil {
		return nil, nil, err
	}
	if c.timeout == 0 {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, &timeoutError{timeout: c.timeout})
	return ctx, cancel, nil
}

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type timeoutError struct{ timeout time.Duration }

func (e *timeoutError) Error() string {
	return "request timed out after " + e.timeout.String() + " (--request-timeout)"
}
func (e *timeoutError) Timeout() bool { return true }
func (e *timeoutError) Is(target error) bool {
	return target == context.DeadlineExceeded
}

type cancelBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
	cause  error
	once   sync.Once
}

func (b *cancelBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(context.Cause(b.ctx), b.cause) {
		err = b.cause
	}
	return n, err
}

func (b *cancelBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(b.cancel)
	return err
}
