package transport

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport/internal/credential"
)

// Request is a call of the API server's HTTP interface.
type Request struct {
	// Method is the HTTP method; "" means GET.
	Method string
	// Path follows the server's URL and begins with a slash: /apis/apps/v1/deployments. It is sent unchanged, so names in it must
	// already be escaped; a query in it is kept.
	Path string
	// Query is added to the path's query.
	Query url.Values
	// Header is sent unchanged; Accept: application/json and the User-Agent are added if they are missing.
	Header http.Header
	// Body is sent if it is not nil; a retry sends it again.
	Body []byte
}

// Do sends the request and returns the response if its status is below 400 (101 and 304 included); the caller reads and closes
// its Body. Every other outcome is an error and needs no closing. A rejection by the server is a *apierrors.StatusError. A failed
// connection names the method, the URL and the cause, and errors.Is finds context.Canceled and context.DeadlineExceeded in it.
//
// Do retries:
//
//   - a response of 429 or 503 after its [Retry-After], and for a GET or HEAD any 5xx with a Retry-After, at most 10 times; the
//     delay must be at most a minute and end before ctx's deadline;
//   - a GET or HEAD after a broken connection, at most three times;
//   - a response of 401 once, with a new credential if there is one.
//
// There is no time-out but ctx. The end of ctx also ends a body still being read.
//
// [Retry-After]: https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func (c *Conn) Do(ctx context.Context, req *Request) (*http.Response, error) {
	call, err := c.newCall(ctx, req)
	if err != nil {
		return nil, err
	}
	for {
		response, err := call.try(ctx)
		if err == nil && response.StatusCode < http.StatusBadRequest {
			return response, nil
		}
		if err := call.prepareRetry(ctx, response, err); err != nil {
			return nil, err
		}
	}
}

// call is the state of a request over its attempts.
type call struct {
	conn       *Conn
	req        *Request
	credential *credential.Credential // nil if the HTTP client authenticates by itself

	attempts int
	delay    time.Duration // before the next attempt
	renewed  bool
}

// newCall gets the credential.
func (c *Conn) newCall(ctx context.Context, req *Request) (*call, error) {
	call := &call{conn: c, req: req}
	if c.authenticator == nil {
		return call, nil
	}
	var err error
	if call.credential, err = c.authenticator.Credential(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", req.target(c), err)
	}
	return call, nil
}

// try makes an attempt of the request, and follows redirects.
func (c *call) try(ctx context.Context) (*http.Response, error) {
	req, err := c.conn.newRequest(c.withUser(ctx), c.req)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, req, func() (*http.Response, error) { return c.conn.http.Do(req) })
}

// send makes an attempt by roundTrip, after waiting for the rate limiter, and reports it to the hooks.
func (c *call) send(ctx context.Context, req *http.Request, roundTrip func() (*http.Response, error)) (*http.Response, error) {
	if limiter := c.conn.options.RateLimiter; limiter != nil {
		begin := time.Now()
		if err := limiter.Wait(ctx); err != nil {
			closeBody(req)
			return nil, fmt.Errorf("%s %s: wait for the rate limiter: %w", req.Method, printableURL(req), retry.WithContextError(ctx, err))
		}
		c.delay += time.Since(begin)
	}
	if err := fence.Check(ctx); err != nil {
		closeBody(req)
		return nil, fmt.Errorf("%s %s: not sent: %w", req.Method, printableURL(req), err)
	}
	begin := time.Now()
	response, err := roundTrip()
	if err != nil {
		// For an ended ctx, net/http returns only its cause.
		err = &requestError{req.Method, printableURL(req), retry.WithContextError(ctx, sanitize.Error(err, sanitize.MaxMessage))}
	}
	c.attempts++
	c.onAttempt(ctx, req, response, err, time.Since(begin))
	if err != nil {
		return nil, err
	}
	if response.Request == nil {
		response.Request = req // a round tripper need not set it
	}
	if response.StatusCode != http.StatusUnauthorized {
		c.credential.SetAccepted()
	}
	c.conn.handleWarnings(ctx, response.Header)
	return response, nil
}

func (r *Request) method() string { return cmp.Or(r.Method, http.MethodGet) }

// isRead reports whether the request changes nothing and can be repeated at any time.
func (r *Request) isRead() bool { return r.method() == http.MethodGet || r.method() == http.MethodHead }

// target returns the method and the URL without a query, for errors before there is an HTTP request.
func (r *Request) target(c *Conn) string {
	path, _, _ := strings.Cut(r.Path, "?")
	return r.method() + " " + c.Server() + path
}

func (c *Conn) newRequest(ctx context.Context, req *Request) (*http.Request, error) {
	target, err := c.requestURL(req)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if req.Body != nil {
		body = bytes.NewReader(req.Body)
	}
	httpRequest, err := http.NewRequestWithContext(ctx, req.Method, "", body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, target.Path, err)
	}
	httpRequest.URL = target
	httpRequest.Host = target.Host // already parsed
	maps.Copy(httpRequest.Header, req.Header)
	if httpRequest.Header.Get("Accept") == "" {
		httpRequest.Header.Set("Accept", "application/json")
	}
	c.setOwnHeader(httpRequest)
	return httpRequest, nil
}

// setOwnHeader sets the User-Agent and, without a pool, the impersonated user.
func (c *Conn) setOwnHeader(req *http.Request) {
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.options.UserAgent)
	}
	if c.authenticator == nil {
		setImpersonation(req.Header, c.impersonate)
	}
}

// requestURL joins the server's URL, the request's path and its query.
func (c *Conn) requestURL(req *Request) (*url.URL, error) {
	path, _, _ := strings.Cut(req.Path, "?") // for errors: a query may be secret
	if len(path) == 0 || path[0] != '/' {
		return nil, fmt.Errorf("request path %q: it must begin with a slash", path)
	}
	target, err := url.Parse(c.base.String() + req.Path)
	if err != nil || strings.Contains(req.Path, "#") || target.Host != c.base.Host { // an empty fragment, too
		return nil, fmt.Errorf("request path %q: invalid (escape its segments with url.PathEscape, and its query)", path)
	}
	switch {
	case len(req.Query) == 0:
	case target.RawQuery == "":
		target.RawQuery = req.Query.Encode()
	default:
		query := target.Query()
		for name, values := range req.Query {
			query[name] = append(query[name], values...)
		}
		target.RawQuery = query.Encode()
	}
	return target, nil
}

// printableURL returns a request's URL for errors: without its query and password.
func printableURL(req *http.Request) string {
	return sanitize.URL(req.URL.String())
}
