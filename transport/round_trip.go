package transport

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/transport/internal/credential"
)

type requestUserKey struct{}

// requestUser is the user of a request.
type requestUser struct {
	conn       *Conn
	credential *credential.Credential
}

// withUser returns a ctx with the user for requests through a pool.
func (c *call) withUser(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestUserKey{}, requestUser{c.conn, c.credential})
}

// RoundTrip authenticates requests to the server's host with the user in the request's context. Requests to any different host
// stay anonymous. It runs below every wrapper, and uses a connection with the credential's certificate. A request without the
// original context, replaced by a wrapper, has neither a credential nor an impersonated user.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	user, ok := req.Context().Value(requestUserKey{}).(requestUser)
	c := user.credential
	toHost := ok && req.URL.Host == user.conn.base.Host
	if c == nil || !toHost {
		c = &credential.Credential{}
	}
	next, err := p.transport(c.Certificate)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if protocol := req.Header.Get("Upgrade"); protocol != "" && !strings.EqualFold(protocol, "websocket") {
		next = http1(next)
	}
	if !toHost {
		return next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	setImpersonation(req.Header, user.conn.impersonate)
	if c.Authorization != "" {
		req.Header.Set("Authorization", c.Authorization)
	}
	return next.RoundTrip(req)
}

// closeBody closes a request's body. A RoundTripper must do that even if it does not send the request.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// RoundTrip implements [http.RoundTripper]: it sends a request to the server unchanged, with the connection's credential, and
// returns any response. It is for requests beyond the API, such as requests to programs behind the server's proxy. For API calls
// see [Conn.Do].
//
// The request's URL must be on the server, because of the credential, and its headers must not authenticate. When the server
// itself returns 401, the credential is renewed. The request is then sent again if it has no body or a GetBody. If the 401 may
// come from a program behind the server, a request to the API server first checks the credential. There are no further retries.
// HTTP/1.1 upgrades are possible: the response's Body is then an io.ReadWriteCloser.
func (c *Conn) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := c.validateRoundTrip(req); err != nil {
		closeBody(req)
		return nil, err
	}
	ctx := req.Context()
	call, err := c.newCall(ctx, &Request{Method: req.Method, Path: req.URL.EscapedPath()})
	if err != nil {
		closeBody(req)
		return nil, err
	}
	response, err := call.roundTrip(req, req.Body)
	if err != nil || response.StatusCode != http.StatusUnauthorized || call.credential == nil ||
		!hasStatus(response) {
		return response, err
	}
	if ok, err := call.renew(ctx, response); !ok || err != nil {
		return response, nil //nolint:nilerr // the response says what is wrong
	}
	body := req.Body
	if body != nil && body != http.NoBody {
		if req.GetBody == nil {
			return response, nil
		}
		if body, err = req.GetBody(); err != nil {
			return response, nil //nolint:nilerr // as without GetBody
		}
	}
	discard(response.Body)
	return call.roundTrip(req, body)
}

// roundTrip makes an attempt.
func (c *call) roundTrip(req *http.Request, body io.ReadCloser) (*http.Response, error) {
	ctx := req.Context()
	own := req.Clone(c.withUser(ctx))
	// As for clients, "" means GET, and the header may be nil.
	own.Method = cmp.Or(own.Method, http.MethodGet)
	if own.Header == nil {
		own.Header = http.Header{}
	}
	own.Body = body
	c.conn.setOwnHeader(own)
	response, err := c.send(ctx, own, func() (*http.Response, error) { return c.conn.http.Transport.RoundTrip(own) })
	if err == nil {
		response.Request = req
	}
	return response, err
}

// tokenProtocol is the prefix of the WebSocket subprotocol for a browser's token.
const tokenProtocol = "base64url.bearer.authorization.k8s.io."

// validateRoundTrip rejects requests to a different server, or with credentials of their own.
func (c *Conn) validateRoundTrip(req *http.Request) error {
	if req.URL.Scheme != c.base.Scheme || req.URL.Host != c.base.Host {
		return fmt.Errorf("%s %s: the URL is not on the credential's server %s", req.Method, printableURL(req), c.Server())
	}
	for name, values := range req.Header {
		if authenticates(name) || strings.Contains(strings.Join(values, ","), tokenProtocol) {
			return fmt.Errorf("%s %s: header %s: not allowed, as the connection authenticates its requests", req.Method, printableURL(req), name)
		}
	}
	return nil
}

// authenticates reports whether the server may authenticate requests by a header.
func authenticates(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return name == "Authorization" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-")
}

// hasStatus reports whether the body is a Kubernetes Status. The body can still be read.
func hasStatus(response *http.Response) bool {
	contentType := response.Header.Get("Content-Type")
	if !strings.HasPrefix(contentType, runtime.ContentTypeJSON) && !strings.HasPrefix(contentType, runtime.ContentTypeProtobuf) {
		return false
	}
	rest := response.Body
	body, _ := io.ReadAll(io.LimitReader(rest, maxErrorBody)) // a later read returns the error again
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	_, ok := decodeStatus(response, body)
	return ok
}
