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
	"sync/atomic"
	"time"
)

// upgradeTimeout bounds the time until the header of the response.
const upgradeTimeout = 61 * time.Second

var (
	// ErrNotUpgraded reports a response with a status below 400 other than 101 Switching Protocols.
	ErrNotUpgraded = errors.New("the server does not switch protocols")

	errUpgradeTimeout = fmt.Errorf("no response from the server for %v: %w", upgradeTimeout, os.ErrDeadlineExceeded)
)

// Upgrade sends a request for an upgrade to the protocol in its Upgrade header. It returns the connection after the server has
// switched protocols, and the header of the response. The caller closes the connection. Closing ends it at once, without a TLS
// alert; the end of ctx has no effect any more. A connection of [Open] upgrades to any protocol. A connection of [New] upgrades
// to websocket, and to any protocol if its HTTP client is limited to HTTP/1.1.
//
// The request passes [Options].WrapTransport, the HTTP client's round trippers and its proxy, like every request. Round trippers
// must pass on the request's context, because net/http/httptrace reports the connection through it, and net/http's
// io.ReadWriteCloser as the response's Body. Otherwise Upgrade returns an error with the reason.
//
// A 401 renews the credential and repeats the request once. A rejection is a *apierrors.StatusError, a response below 400 without
// an upgrade wraps [ErrNotUpgraded], and all remaining errors name the method and the URL. Redirects are not followed.
func (c *Conn) Upgrade(ctx context.Context, req *Request) (net.Conn, http.Header, error) {
	call, err := c.newCall(ctx, req)
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
		if response.StatusCode != http.StatusUnauthorized || call.credential == nil {
			return nil, nil, statusError(response)
		}
		if err := call.prepareRenewed(ctx, response); err != nil {
			return nil, nil, err
		}
	}
}

// upgrade makes one attempt. It returns the connection, the response of a rejection, or an error.
func (c *call) upgrade(ctx context.Context) (net.Conn, *http.Response, error) {
	attempt, cancel := context.WithCancelCause(c.withUser(ctx))
	upgraded := false
	defer func() {
		if !upgraded {
			cancel(nil)
		}
	}()
	var traced atomic.Pointer[httptrace.GotConnInfo] // the last call counts: net/http may retry on a new connection
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { traced.Store(&info) }}
	req, err := c.conn.newRequest(httptrace.WithClientTrace(attempt, trace), c.req)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	response, err := c.send(ctx, req, func() (*http.Response, error) {
		timeout := time.AfterFunc(upgradeTimeout, func() { cancel(errUpgradeTimeout) })
		defer timeout.Stop()
		response, err := c.conn.http.Transport.RoundTrip(req)
		if cause := context.Cause(attempt); err != nil && ctx.Err() == nil && cause != nil {
			err = cause
		}
		if err != nil {
			err = fmt.Errorf("open a stream: %w", err)
		}
		return response, err
	})
	if err != nil {
		return nil, nil, err
	}
	response.Request = req
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		detach(response)
		return nil, response, nil
	case response.StatusCode != http.StatusSwitchingProtocols:
		discard(response.Body)
		return nil, nil, fmt.Errorf("%s %s: open a stream: %w, but returns %d %s", req.Method, printableURL(req),
			ErrNotUpgraded, response.StatusCode, http.StatusText(response.StatusCode))
	}
	conn, err := newUpgradedConn(response, traced.Load())
	if err != nil {
		_ = response.Body.Close()
		return nil, nil, fmt.Errorf("%s %s: open a stream: %w", req.Method, printableURL(req), err)
	}
	upgraded = true
	conn.release = func() { cancel(nil) }
	return conn, response, nil
}

// detach makes a response's body readable after the request's context has ended.
func detach(response *http.Response) {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // the bytes read explain the error
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
}

// newUpgradedConn returns the connection of a 101 response.
func newUpgradedConn(response *http.Response, traced *httptrace.GotConnInfo) (*upgradedConn, error) {
	body, ok := response.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, fmt.Errorf("a round tripper of the HTTP client replaces the body of the response 101 by a %T, which cannot be written to "+
			"(let it pass on such a body as it is)", response.Body)
	}
	if traced == nil {
		return nil, errors.New("the HTTP client's transport does not report its connection, and a stream needs the connection for its time-outs " +
			"(use an *http.Transport, and round trippers that pass on the request's context)")
	}
	return &upgradedConn{Conn: traced.Conn, body: body}, nil
}

// upgradedConn is the connection of an upgrade. Reads and writes go through the response's body: it has the bytes received
// together with the header.
type upgradedConn struct {
	net.Conn // for addresses and deadlines
	body     io.ReadWriteCloser
	release  func() // ends the request's context
}

func (c *upgradedConn) Read(p []byte) (int, error)  { return c.body.Read(p) }
func (c *upgradedConn) Write(p []byte) (int, error) { return c.body.Write(p) }

// Close closes the network connection below TLS first: TLS's own Close may wait for seconds to send an alert.
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
