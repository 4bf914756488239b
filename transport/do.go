package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Request is one call of the API server's HTTP interface.
type Request struct {
	// Method is the HTTP method; "" means GET.
	Method string
	// Path stands after the server's URL and begins with a slash: /apis/apps/v1/deployments. It is sent as it is,
	// so names in it must already be escaped; a query in it is kept.
	Path string
	// Query is added to the path's own.
	Query url.Values
	// Header is sent as it is, with Accept: application/json and the User-Agent filled in where they are missing.
	Header http.Header
	// Body is sent where it is not nil; it can be sent again on a retry.
	Body []byte
}

// Do makes the request and returns the response when its status is below 400 (101 and 304 included); the caller
// reads and closes its Body. Anything else is an error and needs no closing: a refusal by the server is a
// *apierrors.StatusError, a failure to reach it names the method, the URL and the cause, and errors.Is finds
// context.Canceled and context.DeadlineExceeded in it.
//
// What is tried again: an answer of 429 or 5xx as [Retry-After] asks, at most 10 times, while ctx lasts and unless it
// asks for more than a minute; a GET or HEAD whose connection broke, three times; an answer of 401, once and with a
// new credential where there is one. There is no other time-out than ctx, which also ends a body still being read.
//
// [Retry-After]: https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
func (c *Conn) Do(ctx context.Context, req *Request) (*http.Response, error) {
	call, err := c.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	for {
		response, err := call.try(ctx)
		if err == nil && response.StatusCode < http.StatusBadRequest {
			return response, nil
		}
		if err := call.again(ctx, response, err); err != nil {
			return nil, err
		}
	}
}

// build makes the HTTP request out of ours.
func (c *Conn) build(ctx context.Context, req *Request) (*http.Request, error) {
	target, err := c.target(req)
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
	httpRequest.URL, httpRequest.Host = target, target.Host // as it is: it need not be written and read again
	for name, values := range req.Header {
		httpRequest.Header[name] = values
	}
	if httpRequest.Header.Get("Accept") == "" {
		httpRequest.Header.Set("Accept", "application/json")
	}
	if httpRequest.Header.Get("User-Agent") == "" {
		httpRequest.Header.Set("User-Agent", c.options.UserAgent)
	}
	return httpRequest, nil
}

// target joins the server's URL, the request's path and its query.
func (c *Conn) target(req *Request) (*url.URL, error) {
	if len(req.Path) == 0 || req.Path[0] != '/' {
		return nil, fmt.Errorf("the request's path %q must begin with a slash", req.Path)
	}
	target, err := url.Parse(c.base.String() + req.Path)
	if err != nil || target.Fragment != "" || target.Host != c.base.Host {
		return nil, fmt.Errorf("the request's path %q cannot be sent: escape what stands in it with url.PathEscape", req.Path)
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

// shownURL is the URL as errors name it: without its query.
func shownURL(req *http.Request) string {
	shown := *req.URL
	shown.RawQuery = ""
	return shown.Redacted()
}
