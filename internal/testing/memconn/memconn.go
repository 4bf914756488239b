// Package memconn serves HTTP over in-memory connections and injects a fault at a chosen byte. The connections are net.Pipes,
// so that deadlines use the clock of a testing/synctest bubble.
package memconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
)

// Kind is a kind of fault.
type Kind string

// Kinds of faults. The zero value means no fault.
const (
	Cut     Kind = "cut"     // the connection is closed before the byte
	Stall   Kind = "stall"   // no byte arrives from this byte on
	Corrupt Kind = "corrupt" // bits of the byte are flipped
)

// Fault is a fault at a byte of a connection, in a single direction.
type Fault struct {
	Kind   Kind
	Flip   byte // the bits to flip for Corrupt
	Upward bool // to the server
	At     int  // offset of the byte
	Conn   int  // ordinal of the connection, from 1; 0 means 1
}

// String returns the fault for messages of failed tests.
func (f Fault) String() string {
	return fmt.Sprintf("%s %02x at byte %d, upward %v", f.Kind, f.Flip, f.At, f.Upward)
}

// Step returns the distance between two faults of a test: sparse, or 1 with ANYKIND_EVERY_BYTE=1, which takes a minute or two for each
// package.
func Step(sparse int) int {
	if os.Getenv("ANYKIND_EVERY_BYTE") != "" {
		return 1
	}
	return sparse
}

// Listener accepts connections in memory.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{} // closed by Close
	over   chan struct{} // closed by Release
	once   sync.Once
	open   atomic.Int32
	fault  Fault

	mu       sync.Mutex
	accepted int
	faulty   *faultyConn
}

// Listen returns a listener with a fault.
func Listen(fault Fault) *Listener {
	fault.Conn = max(fault.Conn, 1)
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{}), over: make(chan struct{}), fault: fault}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.accepted++; l.accepted == l.fault.Conn {
			l.faulty = &faultyConn{Conn: conn, fault: l.fault, over: l.over, severed: make(chan struct{})}
			return l.faulty, nil
		}
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// Dial opens a connection. It has the signature of http.Transport.DialContext.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		l.open.Add(1)
		return &clientConn{Conn: client, open: &l.open}, nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Open returns the number of connections not closed by clients.
func (l *Listener) Open() int { return int(l.open.Load()) }

// Release ends stalls. It is called once, before the server is closed.
func (l *Listener) Release() {
	close(l.over)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.faulty != nil {
		l.faulty.sever()
	}
}

// Transferred returns the number of bytes of the faulty connection in each direction, as if there were no fault.
func (l *Listener) Transferred() (down, up int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.faulty == nil {
		return 0, 0
	}
	l.faulty.mu.Lock()
	defer l.faulty.mu.Unlock()
	return l.faulty.down, l.faulty.up
}

// Serve starts a server with a fault, and returns a connection to it. stop must be called within the same bubble.
func Serve(t testing.TB, handler http.Handler, fault Fault, opts *transport.Options) (listener *Listener, conn *transport.Conn, stop func()) {
	t.Helper()
	listener, roundTripper, stopServer := Start(t, handler, fault)
	conn, err := transport.New("http://server.test", &http.Client{Transport: roundTripper}, opts)
	require.NoError(t, err)
	return listener, conn, func() {
		listener.Release()
		conn.Close()
		stopServer()
	}
}

// Start starts a server with a fault, and returns a round tripper to it. stop must be called within the same bubble.
func Start(t testing.TB, handler http.Handler, fault Fault) (listener *Listener, roundTripper *http.Transport, stop func()) {
	t.Helper()
	listener = Listen(fault)
	server := httptest.NewUnstartedServer(handler)
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	roundTripper = &http.Transport{DialContext: listener.Dial}
	return listener, roundTripper, func() {
		roundTripper.CloseIdleConnections()
		server.Close()
	}
}

// clientConn is the client's end of a connection.
type clientConn struct {
	net.Conn
	once sync.Once
	open *atomic.Int32
}

func (c *clientConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// faultyConn is the server's end of the faulty connection.
type faultyConn struct {
	net.Conn
	fault   Fault
	stalled atomic.Bool
	over    chan struct{}
	severed chan struct{}
	once    sync.Once

	mu       sync.Mutex
	down, up int // bytes transferred
}

// sever closes the connection for both sides.
func (c *faultyConn) sever() { c.once.Do(func() { close(c.severed); _ = c.Conn.Close() }) }

// Close closes the connection unless it is stalled: the client of a stalled connection must not notice.
func (c *faultyConn) Close() error {
	if !c.stalled.Load() {
		c.sever()
	}
	return nil
}

// apply applies the fault to p, a chunk at offset first. passed is the number of bytes to transfer.
func (c *faultyConn) apply(p []byte, first int, upward bool) (passed int, isCut bool) {
	at := c.fault.At - first
	if c.fault.Upward != upward || at < 0 || at >= len(p) {
		return len(p), false
	}
	switch c.fault.Kind {
	case Cut:
		return at, true
	case Stall:
		c.stalled.Store(true)
		return at, false
	case Corrupt:
		p[at] ^= c.fault.Flip
	}
	return len(p), false
}

func (c *faultyConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	first := c.down
	c.down += len(p)
	c.mu.Unlock()
	if c.stalled.Load() && !c.fault.Upward {
		return len(p), nil
	}
	sent := bytes.Clone(p)
	passed, isCut := c.apply(sent, first, false)
	if n, err := c.Conn.Write(sent[:passed]); err != nil {
		return n, err
	}
	if isCut {
		c.sever()
		return 0, net.ErrClosed
	}
	return len(p), nil
}

func (c *faultyConn) Read(p []byte) (int, error) {
	if c.stalled.Load() && c.fault.Upward {
		select {
		case <-c.over:
		case <-c.severed:
		}
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	first := c.up
	c.up += n
	c.mu.Unlock()
	passed, isCut := c.apply(p[:n], first, true)
	if isCut {
		c.sever()
	}
	return passed, err
}

// SwitchProtocols returns a handler for upgrades. It writes a 101 response with header lines, such as "Upgrade: websocket\r\n",
// and greeting in a single write. Then it echoes.
func SwitchProtocols(header, greeting string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n"+header+"\r\n"+greeting)
		_, _ = io.Copy(conn, both.Reader)
	}
}
