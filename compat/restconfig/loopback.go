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

// client-go's round trippers for SPDY and WebSockets open a network connection by themselves, with a TLS configuration and
// headers from fields of the rest.Config, and accept no other. dialingRoundTripper lets such a round tripper dial a listener
// on the loopback interface, which exists for this one request, and sends what comes there over the connection.
//
// Other programs of the machine can dial the listener, too. Only a request with a random secret is forwarded, once; everybody
// else is disconnected without an answer, after maxHeader bytes or secretTimeout.

const (
	// secretHeader has the secret that a request must present at the listener. It is not forwarded.
	secretHeader  = "X-Anykind-Loopback"
	secretTimeout = 10 * time.Second
	maxHeader     = 1 << 20
)

// dialingRoundTripper sends the requests of a round tripper that dials over conn.
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
	own.URL.Scheme, own.URL.Host, own.Host = "http", listener.Addr().String(), ""
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

// forwarder forwards one request.
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

// serve forwards the request of a connection that presents the secret.
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
		detach() // as of a connection that the round tripper opens itself, the context bounds the handshake only
		splice(local, reader, response, body)
		return
	}
	defer func() { _ = response.Body.Close() }()
	response.Close = true
	_ = response.Write(local)
}

// claim reports whether nobody has claimed the request before.
func (f *forwarder) claim() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.claimed
	f.claimed = true
	return first
}

// failure returns why the request was not answered, if that is known.
func (f *forwarder) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// send sends the request to the URL of the original one.
func (f *forwarder) send(ctx context.Context, req *http.Request) (*http.Response, error) {
	own := req.Clone(ctx)
	if own.ContentLength == 0 {
		own.Body = nil
	}
	own.URL, own.RequestURI, own.Host = f.original.URL, "", ""
	own.Header.Del(secretHeader)
	return f.conn.RoundTrip(own)
}

// splice writes the response of an upgrade to the local connection and copies in both directions until both have ended.
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
			// The server has ended the stream. To close the local connection with unread bytes would reset it, and the last
			// frames of the server would be lost.
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
