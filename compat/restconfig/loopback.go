package restconfig

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// client-go's round trippers for SPDY and WebSockets dial by themselves, with TLS configuration and headers from the
// rest.Config. They cannot use an existing connection. dialingRoundTripper makes such a round tripper dial a loopback listener,
// opened for a single request. It forwards that request over conn.
//
// Any program on the machine can dial the listener. Only a request with a random secret is forwarded, once. Clients without the
// secret are disconnected without a response, after maxHeader bytes or secretTimeout.

const (
	// secretHeader holds the secret of a request to the listener. It is not forwarded.
	secretHeader  = "X-Anykind-Loopback"
	secretTimeout = 10 * time.Second
	maxHeader     = 1 << 20
)

// dialingRoundTripper sends the requests of base, a round tripper with its own dialer, over conn.
type dialingRoundTripper struct {
	conn *roundTripper
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (d *dialingRoundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	listener, err := listenLoopback()
	if err != nil {
		return nil, fmt.Errorf("%s %s: listen for the upgrade: %w", req.Method, req.URL.Path, err)
	}
	f := &forwarder{conn: d.conn, original: req, secret: []byte(rand.Text()), listener: listener}
	go f.accept() //nolint:contextcheck // the connection outlives the context of the request
	own := req.Clone(req.Context())
	own.URL.Scheme = "http"
	own.URL.Host = listener.Addr().String()
	own.Host = ""
	own.Header.Set(secretHeader, string(f.secret))
	response, err := d.base.RoundTrip(own)
	_ = listener.Close()
	if cause := f.failure(); err != nil && cause != nil {
		err = cause
	}
	if response != nil {
		response.Request = req
	}
	return response, err
}

func listenLoopback() (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
	if err != nil {
		return net.Listen("tcp", "[::1]:0") //nolint:noctx // it does not block
	}
	return listener, nil
}

// forwarder forwards a single request.
type forwarder struct {
	conn     *roundTripper
	original *http.Request
	secret   []byte
	listener net.Listener

	mu      sync.Mutex
	claimed bool
	err     error
}

func (f *forwarder) accept() {
	for {
		local, err := f.listener.Accept()
		if err != nil {
			return
		}
		go f.serve(local)
	}
}

// serve forwards the request of a connection if it contains the secret.
func (f *forwarder) serve(local net.Conn) {
	defer func() { _ = local.Close() }()
	_ = local.SetDeadline(time.Now().Add(secretTimeout))
	limited := &io.LimitedReader{R: local, N: maxHeader}
	reader := bufio.NewReader(limited)
	req, err := http.ReadRequest(reader)
	if err != nil || subtle.ConstantTimeCompare([]byte(req.Header.Get(secretHeader)), f.secret) != 1 || !f.claim() {
		return
	}
	_ = f.listener.Close()
	limited.N = math.MaxInt64
	_ = local.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(f.original.Context()))
	defer cancel(nil)
	detach := context.AfterFunc(f.original.Context(), func() { cancel(context.Cause(f.original.Context())) })
	defer detach()
	response, err := f.send(ctx, req)
	if err != nil {
		f.mu.Lock()
		f.err = err
		f.mu.Unlock()
		return
	}
	if body, ok := response.Body.(io.ReadWriteCloser); ok && response.StatusCode == http.StatusSwitchingProtocols {
		detach() // the context bounds the handshake only, as for connections dialed by the round tripper
		splice(local, reader, response, body)
		return
	}
	defer func() { _ = response.Body.Close() }()
	response.Close = true
	_ = response.Write(local)
}

// claim reports whether this is the first call.
func (f *forwarder) claim() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.claimed
	f.claimed = true
	return first
}

// failure returns the error of the forwarded request, or nil.
func (f *forwarder) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// send sends req to the URL of the original request.
func (f *forwarder) send(ctx context.Context, req *http.Request) (*http.Response, error) {
	own := req.Clone(ctx)
	if own.ContentLength == 0 {
		own.Body = nil
	}
	own.URL = f.original.URL
	own.RequestURI = ""
	own.Host = ""
	own.Header.Del(secretHeader)
	return f.conn.RoundTrip(own)
}

// splice writes the upgrade response to the local connection. It copies in both directions until both have ended.
func splice(local net.Conn, reader io.Reader, response *http.Response, remote io.ReadWriteCloser) {
	if _, err := fmt.Fprintf(local, "HTTP/1.1 %s\r\n", response.Status); err != nil {
		_ = remote.Close()
		return
	}
	_ = response.Header.Write(local)
	_, _ = io.WriteString(local, "\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := io.Copy(remote, reader); err != nil {
			// The server has ended the stream. Closing the local connection with unread bytes would reset it and lose the last
			// frames of the server.
			_, _ = io.Copy(io.Discard, reader)
		}
		_ = remote.Close()
	}()
	_, _ = io.Copy(local, remote)
	if half, ok := local.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	<-done
}
