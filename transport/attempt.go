package transport

import (
	"context"
	"net/http"
	"time"
)

// Attempt is one try of a request, as [Options].Observe sees it. It holds no secret: no header, no body, no query.
type Attempt struct {
	Method string
	// URL is where it went, without a query.
	URL string
	// Verb and Resource are what the server's audit log calls them: "list" and "deployments.apps", "create" and
	// "pods/eviction". A path that is no resource's has its method in lower case and "".
	Verb, Resource string
	// Number is 1 for a request's first attempt.
	Number int
	// Waited is how long this attempt was held back: by the limiter, by Retry-After, after a broken connection.
	Waited time.Duration
	// Duration is the time until the answer's header was there.
	Duration time.Duration
	// Code is the answer's HTTP status, 0 where there was none.
	Code int
	// Err is why there was none.
	Err error
}

func (c *call) observe(ctx context.Context, sent *http.Request, response *http.Response, err error, took time.Duration) {
	waited := c.waited
	c.waited = 0
	if c.conn.options.Observe == nil {
		return
	}
	attempt := Attempt{
		Method: sent.Method, URL: shownURL(sent), Number: c.attempts, Waited: waited, Duration: took, Err: err,
	}
	attempt.Verb, attempt.Resource = verbAndResource(sent, c.conn.base.Path)
	if response != nil {
		attempt.Code = response.StatusCode
	}
	c.conn.options.Observe(ctx, attempt)
}
