package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// call is a request on its way through its attempts.
type call struct {
	conn *Conn
	req  *Request
	id   *identity // nil where the HTTP client authenticates by itself

	attempts int
	waited   time.Duration // before the next attempt
	renewed  bool
}

// begin finds out who asks.
func (c *Conn) begin(ctx context.Context, req *Request) (*call, error) {
	begun := &call{conn: c, req: req}
	if c.who == nil {
		return begun, nil
	}
	id, err := c.who.identity(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", methodOf(req), c.Server(), pathOf(req), err)
	}
	begun.id = id
	return begun, nil
}

// try makes one attempt.
func (c *call) try(ctx context.Context) (*http.Response, error) {
	if c.id != nil {
		ctx = asking(ctx, c.id)
	}
	httpRequest, err := c.conn.build(ctx, c.req)
	if err != nil {
		return nil, err
	}
	if err := c.queue(ctx, httpRequest); err != nil {
		return nil, err
	}
	begin := time.Now()
	response, err := c.conn.http.Do(httpRequest)
	if err != nil {
		// The wrapper's text repeats the URL with its query, which may hold what belongs in no log.
		var wrapper *url.Error
		if errors.As(err, &wrapper) {
			err = wrapper.Err
		}
		// net/http returns only the cause of a context that ended with one.
		err = retry.WithContextError(ctx, sanitizeError(err))
		err = fmt.Errorf("%s %s: %w", httpRequest.Method, shownURL(httpRequest), err)
	}
	c.attempts++
	c.observe(ctx, httpRequest, response, err, time.Since(begin))
	if err == nil {
		c.noteAnswer(ctx, response)
	}
	return response, err
}

// noteAnswer passes on what a response says beside its answer: warnings, and that the server accepts the credential.
func (c *call) noteAnswer(ctx context.Context, response *http.Response) {
	if response.StatusCode != http.StatusUnauthorized {
		c.id.markAccepted()
	}
	c.conn.passWarnings(ctx, response.Header)
}

// queue waits for the program's own limiter.
func (c *call) queue(ctx context.Context, httpRequest *http.Request) error {
	limiter := c.conn.options.Limiter
	if limiter == nil {
		return nil
	}
	begin := time.Now()
	if err := limiter.Wait(ctx); err != nil {
		return fmt.Errorf("%s %s: wait for the limiter: %w", httpRequest.Method, shownURL(httpRequest), err)
	}
	c.waited += time.Since(begin)
	return nil
}

// again waits until the next attempt, or says why there is none. It closes the response.
func (c *call) again(ctx context.Context, response *http.Response, err error) error {
	var wait time.Duration
	switch {
	case err != nil:
		if !c.reconnects(ctx, err) {
			return err
		}
		wait = retry.Jitter(minDelay().Delay(c.attempts))
	case response.StatusCode == http.StatusUnauthorized && c.id != nil:
		return c.renew(ctx, response)
	default:
		asked, ok := retryAfter(ctx, response, c.attempts)
		if !ok {
			return statusError(response)
		}
		discard(response.Body)
		wait = asked
	}
	c.waited = wait
	if err := retry.Sleep(ctx, wait); err != nil {
		return fmt.Errorf("%s %s%s: wait to try again: %w", methodOf(c.req), c.conn.Server(), pathOf(c.req), err)
	}
	return nil
}

// renew gets another credential after the server refused the first.
func (c *call) renew(ctx context.Context, response *http.Response) error {
	if c.renewed || !c.refusedByServer(ctx, response) {
		return unauthorized(response, c.id, nil)
	}
	c.renewed = true
	id, err := c.conn.who.renew(ctx, c.id)
	if err != nil || id == c.id {
		return unauthorized(response, c.id, err)
	}
	discard(response.Body)
	c.id, c.waited = id, 0
	return nil
}

// unauthorized is the error of an answer of 401, with what is known here of its cause.
func unauthorized(response *http.Response, id *identity, renewing error) error {
	refused := statusError(response)
	if renewing != nil {
		return fmt.Errorf("%w; renewing the credential failed: %w", refused, renewing)
	}
	if id.certificate != nil && id.certificate.Leaf != nil && time.Now().After(id.certificate.Leaf.NotAfter) {
		return fmt.Errorf("%w; the client certificate expired at %s: get a new one", refused, id.certificate.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return refused
}

func methodOf(req *Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}

// pathOf is the request's path as errors show it: without its query.
func pathOf(req *Request) string {
	for i := range len(req.Path) {
		if req.Path[i] == '?' {
			return req.Path[:i]
		}
	}
	return req.Path
}
