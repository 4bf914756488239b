// Package wsconn is the client side of a WebSocket on a connection upgraded by an HTTP client.
//
// # Handshake
//
// The caller sends the handshake like any other request, through the same round trippers and proxy: [NewHandshake] makes its
// headers and [Handshake.Open] checks the response. gorilla has no constructor for an open connection. Open therefore lets it dial
// a net.Conn that responds to a second handshake itself and then becomes the connection (loopbackConn).
//
// # Liveness
//
// [Conn.KeepAlive] sends a ping every five seconds and responds to the peer's pings. A read fails with [ErrUnresponsive] after 61
// seconds without a byte. That time begins with each read, not with the last byte: if a slow local writer delays the next read,
// the peer is not to blame.
//
// # Goroutines and memory
//
// A single goroutine may read and a single goroutine may write; KeepAlive, Detach and Close may run at the same time. A
// connection holds a read buffer of 4 KiB; the write buffer of 32 KiB is pooled and held only during a write.
package wsconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/anykind/anykind/internal/sanitize"
)

const (
	// MaxMessage is the recommended size of a message, without its channel byte: with the header of 8 bytes it fills two TLS
	// records.
	MaxMessage = 32<<10 - 1 - 8

	pingInterval = 5 * time.Second
	readTimeout  = 12*pingInterval + time.Second
	maxReason    = 256 // bytes of a peer's reason for closing in an error
)

// ErrUnresponsive is the error of reading from a peer that sends nothing, not even pongs.
var ErrUnresponsive = fmt.Errorf("the server has sent nothing for %v, not even a pong: %w", readTimeout, os.ErrDeadlineExceeded)

// Conn is an open WebSocket with binary messages.
type Conn struct {
	ws      *websocket.Conn
	raw     net.Conn
	detach  func() bool
	pongs   chan string
	message io.Reader // the message being read by Read
	once    sync.Once
	done    chan struct{}
}

func newConn(ws *websocket.Conn, raw net.Conn, detach func() bool) *Conn {
	c := &Conn{ws: ws, raw: raw, detach: detach, pongs: make(chan string, 1), done: make(chan struct{})}
	// gorilla's own handlers write from the reading goroutine. Reading would wait behind a blocked writer, and the handlers'
	// write deadline of a second would break a connection that is merely full.
	ws.SetPingHandler(func(text string) error {
		select {
		case c.pongs <- text:
		default:
		}
		return nil
	})
	ws.SetCloseHandler(func(int, string) error { return nil })
	return c
}

// KeepAlive sends pings and pongs until the connection is closed.
func (c *Conn) KeepAlive() {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-c.done:
			return
		case <-ticker.C:
			err = c.ws.WriteControl(websocket.PingMessage, nil, time.Time{})
		case text := <-c.pongs:
			err = c.ws.WriteControl(websocket.PongMessage, []byte(text), time.Time{})
		}
		if err != nil {
			return // reading fails as well
		}
	}
}

// Detach separates the connection from the ctx of Open: the end of ctx no longer closes it. It reports false if ctx has already
// ended.
func (c *Conn) Detach() bool { return c.detach() }

// Done returns a channel that is closed by Close.
func (c *Conn) Done() <-chan struct{} { return c.done }

// LocalAddr returns the local address.
func (c *Conn) LocalAddr() net.Addr { return c.ws.LocalAddr() }

// Close ends the connection at once and wakes readers and writers. It closes the raw connection: closing a TLS connection first
// sends an alert, and may wait for seconds.
func (c *Conn) Close() {
	c.once.Do(func() {
		c.detach()
		close(c.done)
		_ = c.raw.Close()
	})
}

// NextMessage returns the next message.
func (c *Conn) NextMessage() (io.Reader, error) {
	kind, message, err := c.ws.NextReader()
	if err == nil && kind != websocket.BinaryMessage {
		err = fmt.Errorf("the server broke the protocol %s: it sent text", c.ws.Subprotocol())
	}
	if err != nil {
		return nil, err
	}
	return message, nil
}

// Read reads the bytes of consecutive messages.
func (c *Conn) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if c.message == nil {
			if c.message, err = c.NextMessage(); err != nil {
				return 0, err
			}
		}
		if n, err = c.message.Read(p); err == io.EOF { //nolint:errorlint // itself: the message's end
			c.message = nil
			err = nil
		}
	}
	return n, err
}

// WriteMessage sends a message.
func (c *Conn) WriteMessage(p []byte) error { return c.ws.WriteMessage(websocket.BinaryMessage, p) }

// WriteClose sends a close message. A server then closes the connection.
func (c *Conn) WriteClose() error {
	return c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Time{})
}

// EndError returns the error of an ended connection. A close by the peer is no success by itself: the error then wraps
// io.ErrUnexpectedEOF and the peer's reason, safe to print.
func EndError(err error) error {
	closed, isClosed := errors.AsType[*websocket.CloseError](err)
	if isClosed {
		err = &websocket.CloseError{Code: closed.Code, Text: sanitize.Text(closed.Text, maxReason)} // gorilla may share closed
	}
	if isClosed || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
	return err
}

// timeoutConn is the connection under a WebSocket, with readTimeout for each read.
type timeoutConn struct {
	net.Conn
	timedOut bool // used by the reading goroutine
}

// Read implements io.Reader. A time-out is terminal: bufio drops the error behind a truncated frame, and would wait again.
func (c *timeoutConn) Read(p []byte) (int, error) {
	if c.timedOut {
		return 0, ErrUnresponsive
	}
	_ = c.SetReadDeadline(time.Now().Add(readTimeout)) // on failure, reading fails, too
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.timedOut = true
		err = ErrUnresponsive
	}
	return n, err
}
