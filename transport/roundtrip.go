package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// RoundTrip implements [http.RoundTripper]: it sends a request to the server as it is, with the connection's
// credential, and returns whatever the answer is. It is for what is no call of the API, such as requests to programs
// behind the server's proxy; for calls see [Conn.Do].
//
// The request's URL must be on the server, so that the credential goes nowhere else, and its headers must not say who
// asks. When the server itself answers 401, the credential is renewed and the request made again if its body can be had
// again. Where a program behind the server may have answered, the server is asked first whether it accepts the credential. Nothing else is retried. HTTP/1.1 upgrades are possible: the response's Body is then an
// io.ReadWriteCloser.
func (c *Conn) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := c.mayCarry(req); err != nil {
		closeBody(req)
		return nil, err
	}
	call, err := c.begin(req.Context(), &Request{Method: req.Method, Path: req.URL.EscapedPath()})
	if err != nil {
		closeBody(req)
		return nil, err
	}
	response, err := call.carry(req)
	if err != nil || response.StatusCode != http.StatusUnauthorized || call.id == nil ||
		!isStatus(response) || !call.refusedByServer(req.Context(), response) {
		return response, err
	}
	renewed, err := c.who.renew(req.Context(), call.id)
	if err != nil || renewed == call.id {
		return response, nil //nolint:nilerr // the answer says what is wrong
	}
	again := req
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return response, nil
		}
		again = req.Clone(req.Context())
		if again.Body, err = req.GetBody(); err != nil {
			return response, nil //nolint:nilerr // the answer is one without that
		}
	}
	discard(response.Body)
	call.id = renewed
	response, err = call.carry(again)
	if response != nil {
		response.Request = req
	}
	return response, err
}

// carry makes one attempt.
func (c *call) carry(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if c.id != nil {
		ctx = asking(ctx, c.id)
	}
	own := req.Clone(ctx)
	if own.Header.Get("User-Agent") == "" {
		own.Header.Set("User-Agent", c.conn.options.UserAgent)
	}
	if err := c.queue(ctx, own); err != nil {
		closeBody(req)
		return nil, err
	}
	begin := time.Now()
	response, err := c.conn.roundTripper().RoundTrip(own)
	if err != nil {
		err = retry.WithContextError(ctx, sanitizeError(err))
		err = fmt.Errorf("%s %s: %w", own.Method, shownURL(own), err)
	}
	c.attempts++
	c.observe(ctx, own, response, err, time.Since(begin))
	if err != nil {
		return nil, err
	}
	c.noteAnswer(ctx, response)
	response.Request = req
	return response, nil
}

// isStatus tells whether a refusal is the API server's own. The body can still be read.
func isStatus(response *http.Response) bool {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return false
	}
	rest := response.Body
	body, _ := io.ReadAll(io.LimitReader(rest, maxErrorBody)) // whoever reads on meets the error again
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	var status struct{ Kind string }
	return json.Unmarshal(body, &status) == nil && status.Kind == "Status"
}

func (c *Conn) roundTripper() http.RoundTripper {
	if c.http.Transport == nil {
		return http.DefaultTransport
	}
	return c.http.Transport
}

// tokenProtocol is how browsers send a token when they open a WebSocket.
const tokenProtocol = "base64url.bearer.authorization.k8s.io."

// mayCarry refuses what would send a credential to another server, or another credential to this one.
func (c *Conn) mayCarry(req *http.Request) error {
	if req.URL.Scheme != c.base.Scheme || req.URL.Host != c.base.Host {
		return fmt.Errorf("%s %s: the URL is not on the server %s, which the credential is for", req.Method, shownURL(req), c.Server())
	}
	for name, values := range req.Header {
		if saysWho(name) || strings.Contains(strings.Join(values, ","), tokenProtocol) {
			return fmt.Errorf("%s %s: the header %s is the connection's own to the API server, and goes no further", req.Method, shownURL(req), name)
		}
	}
	return nil
}

// saysWho tells whether a header would tell the server who asks.
func saysWho(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return name == "Authorization" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-")
}
