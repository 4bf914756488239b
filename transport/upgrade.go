package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Handshake is what a WebSocket dialer needs to reach the server as [Conn.Do] does.
type Handshake struct {
	// URL has the scheme ws or wss.
	URL *url.URL
	// Header has the request's own headers, the User-Agent and the credentials: keep it out of logs.
	Header http.Header
	// TLS is a copy that the dialer may change; it speaks HTTP/1.1 only. It is nil where there is no TLS.
	TLS *tls.Config
	// Proxy picks the proxy; nil for none.
	Proxy func(*http.Request) (*url.URL, error)
	// Dial opens the connection under it all; nil means as net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Upgrade calls dial to turn a request into a stream, as WebSocket dialers do: dial returns the server's response, with
// a body where the server refused, and an error unless the stream is open. An answer of 401 renews the credential and
// calls dial again, once. A refusal is a *apierrors.StatusError, and any other failure names the method and the URL.
//
// A Conn that [New] made of an HTTP client has the TLS settings, proxy and dialer that the client's transport holds,
// but not the headers that it adds; see [Options].Wrap for those.
func (c *Conn) Upgrade(ctx context.Context, req *Request, dial func(*Handshake) (*http.Response, error)) error {
	call, err := c.begin(ctx, req)
	if err != nil {
		return err
	}
	for {
		response, err := call.shake(ctx, dial)
		if err == nil {
			return nil
		}
		if response == nil || response.StatusCode < http.StatusBadRequest {
			return err
		}
		if response.StatusCode != http.StatusUnauthorized || call.id == nil {
			return statusError(response)
		}
		if err := call.renew(ctx, response); err != nil {
			return err
		}
	}
}

// shake makes one attempt.
func (c *call) shake(ctx context.Context, dial func(*Handshake) (*http.Response, error)) (*http.Response, error) {
	httpRequest, err := c.conn.build(ctx, c.req)
	if err != nil {
		return nil, err
	}
	handshake, err := c.handshake(httpRequest)
	if err == nil {
		err = c.queue(ctx, httpRequest)
	}
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	response, err := dial(handshake)
	c.attempts++
	if err != nil {
		err = fmt.Errorf("%s %s: open a stream: %w", httpRequest.Method, shownURL(httpRequest), err)
	}
	c.observe(ctx, httpRequest, response, err, time.Since(begin))
	if response != nil {
		response.Request = httpRequest
		c.conn.passWarnings(ctx, response.Header)
	}
	return response, err
}

func (c *call) handshake(httpRequest *http.Request) (*Handshake, error) {
	target := *httpRequest.URL
	target.Scheme = map[string]string{"http": "ws", "https": "wss"}[target.Scheme]
	shaking := &Handshake{URL: &target, Header: httpRequest.Header}
	from := c.conn.http.Transport
	if c.id != nil {
		pool, err := c.conn.authorize.connections.showing(c.id.certificate)
		if err != nil {
			return nil, err
		}
		c.conn.authorize.write(c.id, shaking.Header)
		from = pool
	}
	transport, err := innermost(from)
	if err != nil {
		return nil, fmt.Errorf("%s %s: open a stream: %w", httpRequest.Method, shownURL(httpRequest), err)
	}
	shaking.Proxy, shaking.Dial = transport.Proxy, transport.DialContext
	if target.Scheme == "wss" {
		shaking.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if transport.TLSClientConfig != nil {
			shaking.TLS = transport.TLSClientConfig.Clone()
		}
		shaking.TLS.NextProtos = []string{"http/1.1"}
	}
	return shaking, nil
}

// innermost finds the http.Transport under wrappers that tell what they wrap, as client-go's do.
func innermost(wrapped http.RoundTripper) (*http.Transport, error) {
	for {
		switch t := wrapped.(type) {
		case nil:
			wrapped = http.DefaultTransport
		case *http.Transport:
			return t, nil
		case utilnet.RoundTripperWrapper:
			wrapped = t.WrappedRoundTripper()
		default:
			return nil, errors.New("the HTTP client's transport does not show what it dials with: " +
				"give transport.New one that is an *http.Transport, or has a method WrappedRoundTripper")
		}
	}
}
