package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// upgradeTimeout is how long a server may take to answer a request for an upgrade.
const upgradeTimeout = 61 * time.Second

var (
	// ErrNotUpgraded is the error of a server that answered a request for an upgrade with another status below 400 than
	// 101 Switching Protocols.
	ErrNotUpgraded = errors.New("the server does not switch protocols")

	errUpgradeTimeout = fmt.Errorf("the server has answered nothing for %v: %w", upgradeTimeout, os.ErrDeadlineExceeded)
)

// Upgrade sends a request for an upgrade, whose Header names the protocol in Upgrade, and returns the connection after the
// server has switched to that protocol, and the header of the server's answer. The caller closes the connection, which
// ends it at once, without TLS's farewell; the end of ctx no longer does. The protocol should be websocket: others fail
// where the connection is made for HTTP/2.
//
// The request takes the way of all others: through [Options].Wrap, the HTTP client's round trippers and its proxy. They
// must pass on the request's context, which reports the connection by net/http/httptrace, and the answer's Body as the
// io.ReadWriteCloser that net/http makes of it; else Upgrade returns an error that says so.
//
// An answer of 401 renews the credential and sends the request again, once. A refusal is a *apierrors.StatusError, an
// answer below 400 that is no upgrade wraps [ErrNotUpgraded], and any other failure names the method and the URL.
// Redirects are not followed.
func (c *Conn) Upgrade(ctx context.Context, req *Request) (net.Conn, http.Header, error) {
	call, err := c.begin(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	for {
		conn, response, err := call.upgrade(ctx)
		if err != nil {
			return nil, nil, err
		}
		if conn != nil {
			return conn, response.Header, nil
		}
		if response.StatusCode != http.StatusUnauthorized || call.id == nil {
			return nil, nil, statusError(response)
		}
		if err := call.renew(ctx, response); err != nil {
			return nil, nil, err
		}
	}
}

// upgrade makes one attempt. It returns the connection, the response of a refusal, or an error.
func (c *call) upgrade(ctx context.Context) (net.Conn, *http.Response, error) {
	if c.id != nil {
		ctx = asking(ctx, c.id)
	}
	attempt, cancel := context.WithCancelCause(ctx)
	upgraded := false
	defer func() {
		if !upgraded {
			cancel(nil)
		}
	}()
	var traced tracedConn
	httpRequest, err := c.conn.build(httptrace.WithClientTrace(attempt, traced.trace()), c.req)
	if err != nil {
		return nil, nil, err
	}
	httpRequest.Header.Set("Connection", "Upgrade")
	if err := c.queue(ctx, httpRequest); err != nil {
		return nil, nil, err
	}
	begin := time.Now()
	timeout := time.AfterFunc(upgradeTimeout, func() { cancel(errUpgradeTimeout) })
	response, err := c.conn.roundTripper().RoundTrip(httpRequest)
	timeout.Stop()
	if err != nil {
		err = upgradeError(ctx, attempt, httpRequest, err)
	}
	c.attempts++
	c.observe(ctx, httpRequest, response, err, time.Since(begin))
	if err != nil {
		return nil, nil, err
	}
	response.Request = httpRequest
	c.noteAnswer(ctx, response)
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		detach(response)
		return nil, response, nil
	case response.StatusCode == http.StatusSwitchingProtocols:
		conn, err := traced.upgraded(response)
		if err == nil {
			upgraded = true
			conn.release = func() { cancel(nil) }
			return conn, response, nil
		}
		_ = response.Body.Close()
		return nil, nil, fmt.Errorf("%s %s: open a stream: %w", httpRequest.Method, shownURL(httpRequest), err)
	default:
		discard(response.Body)
		return nil, nil, fmt.Errorf("%s %s: open a stream: %w, but answers %d %s", httpRequest.Method, shownURL(httpRequest),
			ErrNotUpgraded, response.StatusCode, http.StatusText(response.StatusCode))
	}
}

// upgradeError returns the error of a request without an answer.
func upgradeError(ctx, attempt context.Context, req *http.Request, err error) error {
	if cause := context.Cause(attempt); ctx.Err() == nil && cause != nil {
		err = cause
	}
	err = retry.WithContextError(ctx, sanitizeError(err))
	return fmt.Errorf("%s %s: open a stream: %w", req.Method, shownURL(req), err)
}

// detach makes a refusal's body readable after the request's context has ended.
func detach(response *http.Response) {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // what there is explains the refusal
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
}

// tracedConn is the connection that net/http has sent a request on.
type tracedConn struct {
	mu   sync.Mutex
	conn net.Conn
}

func (t *tracedConn) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.conn = info.Conn // the last counts: net/http may try again on another
	}}
}

// upgraded returns the connection that a response has switched to another protocol.
func (t *tracedConn) upgraded(response *http.Response) (*upgradedConn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	body, ok := response.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, fmt.Errorf("a round tripper of the HTTP client replaces the body of the answer 101 by a %T, which cannot be written to: "+
			"let it pass on such an answer's body as it is", response.Body)
	}
	if t.conn == nil {
		return nil, errors.New("the HTTP client's transport does not report its connection, which a stream needs for its time-outs: " +
			"use an *http.Transport, and round trippers that pass on the request's context")
	}
	return &upgradedConn{Conn: t.conn, body: body}, nil
}

// upgradedConn is the connection of an upgrade. What is read and written passes through the response's body, which has
// what the server sent right behind its header.
type upgradedConn struct {
	net.Conn // for addresses and deadlines
	body     io.ReadWriteCloser
	release  func() // ends the request's context
}

func (c *upgradedConn) Read(p []byte) (int, error)  { return c.body.Read(p) }
func (c *upgradedConn) Write(p []byte) (int, error) { return c.body.Write(p) }

// Close closes the network connection under TLS first: TLS's own Close sends an alert, and waits for seconds to be able
// to.
func (c *upgradedConn) Close() error {
	raw := c.Conn
	if secured, ok := raw.(interface{ NetConn() net.Conn }); ok {
		raw = secured.NetConn()
	}
	err := raw.Close()
	_ = c.body.Close()
	c.release()
	return err
}
