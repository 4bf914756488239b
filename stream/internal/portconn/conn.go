// Package portconn implements [net.Conn] on top of a [Carrier], such as a pair of SPDY streams.
//
// # Receive buffers
//
// A [Conn] holds received, unread bytes. Connections of a tunnel share a [ReceiveBuffer], because carriers have no flow control
// for single connections: the reader of the tunnel calls [Conn.WaitRoom] before each piece. A connection may leave 256 KiB
// unread, and all connections of a tunnel together 4 MiB plus one piece; beyond that the tunnel's reader stops, and TCP stops the
// peer. Unread bytes are kept in pooled chunks of 16 KiB.
//
// # End of a connection
//
// The end of the data is not yet io.EOF: the peer reports an error of its connection on a separate channel. A Conn returns
// io.EOF, unwrapped, only after both channels have ended, or if the report is five seconds late.
package portconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Carrier sends the bytes of a connection.
type Carrier interface {
	// Send copies and sends a part of p, and returns its length. It waits until the bytes are queued, done is closed
	// (net.ErrClosed) or expired is closed (os.ErrDeadlineExceeded).
	Send(p []byte, done, expired <-chan struct{}) (int, error)
	// CloseWrite ends the data after all sent bytes. It does not wait.
	CloseWrite() error
	// Close ends both directions after all sent bytes. It does not wait, and is called once.
	Close()
}

// Conn is a connection to a port of a pod. It is safe for concurrent use.
type Conn struct {
	buffer  *ReceiveBuffer
	local   net.Addr
	remote  Addr
	carrier Carrier

	readDeadline, writeDeadline *deadline

	readable  chan struct{} // has an element when there is something to read, or the end
	done      chan struct{} // closed when writing has ended
	writeLock chan struct{} // has an element during a Write, to keep its data together

	mu          sync.Mutex
	unread      byteQueue
	dataEnded   bool   // the peer has sent its last byte
	errorsEnded bool   // the peer has reported its error, or none
	errorText   []byte // its report; empty without an error
	failure     error
	writeClosed bool // by CloseWrite
	closed      bool // by Close
	reportTimer *time.Timer
}

// New returns a connection of a tunnel. All connections of the tunnel use the same buffer. It can receive at once; all further
// methods need SetCarrier. Close it even without a carrier.
func New(remote Addr, local net.Addr, buffer *ReceiveBuffer) *Conn {
	buffer.add(1, 0)
	return &Conn{
		buffer: buffer, local: local, remote: remote, readDeadline: newDeadline(), writeDeadline: newDeadline(),
		readable: make(chan struct{}, 1), done: make(chan struct{}), writeLock: make(chan struct{}, 1),
	}
}

// SetCarrier sets the carrier. It must be called before the connection is used.
func (c *Conn) SetCarrier(carrier Carrier) { c.carrier = carrier }

// Addr is the address of a pod's port.
type Addr struct {
	Pod  string
	Port uint16
}

// Network returns "portforward".
func (Addr) Network() string { return "portforward" }

// String returns the address as pod:port.
func (a Addr) String() string { return net.JoinHostPort(a.Pod, fmt.Sprint(a.Port)) }

// Read implements io.Reader. io.EOF itself is the end intended by the peer.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		expired := c.readDeadline.wait()
		if isClosed(expired) {
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		}
		n, err := c.tryRead(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		select {
		case <-c.readable:
		case <-expired:
		}
	}
}

// tryRead reads received bytes, or returns the error of the ended connection.
func (c *Conn) tryRead(p []byte) (int, error) {
	c.mu.Lock()
	n := 0
	if !c.closed {
		n = c.unread.read(p)
	}
	err := c.endLocked()
	more := c.unread.size > 0 || err != nil
	c.mu.Unlock()
	if more {
		signal(c.readable) // for the next reader
	}
	if n > 0 {
		c.buffer.add(0, -n)
		return n, nil
	}
	if err == io.EOF { //nolint:errorlint // itself, and not one within another
		return 0, err
	}
	return 0, c.opError("read", err)
}

// endLocked returns the reason for the end of the data, or nil.
func (c *Conn) endLocked() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.failure != nil:
		return c.failure
	case c.dataEnded && c.errorsEnded:
		return io.EOF
	default:
		return nil
	}
}

// Write implements io.Writer.
func (c *Conn) Write(p []byte) (int, error) {
	expired := c.writeDeadline.wait()
	select {
	case c.writeLock <- struct{}{}:
		defer func() { <-c.writeLock }()
	case <-c.done: // writable returns the error
	case <-expired:
		return 0, c.opError("write", os.ErrDeadlineExceeded)
	}
	written := 0
	for {
		expired := c.writeDeadline.wait()
		err := c.writable()
		if err == nil && isClosed(expired) {
			err = os.ErrDeadlineExceeded
		}
		if err != nil || len(p) == 0 {
			return written, c.opError("write", err)
		}
		n, err := c.carrier.Send(p[written:], c.done, expired)
		written += n
		if err != nil {
			if cause := c.writable(); cause != nil {
				err = cause
			}
			return written, c.opError("write", err)
		}
		if written == len(p) {
			return written, nil // even if the peer has responded and closed the connection by now
		}
	}
}

// writable returns an error if writing has ended.
func (c *Conn) writable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.endLocked()
	if errors.Is(err, io.EOF) || err == nil && c.writeClosed {
		return syscall.EPIPE
	}
	return err
}

// CloseWrite ends the data to the peer; reading continues.
func (c *Conn) CloseWrite() error {
	if err := c.writable(); err != nil {
		return c.opError("close", err)
	}
	err := c.carrier.CloseWrite()
	if err == nil {
		c.mu.Lock()
		c.writeClosed = true
		c.mu.Unlock()
	}
	return c.opError("close", err)
}

// Close ends both directions. Bytes already written are still sent.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opError("close", net.ErrClosed)
	}
	c.closed = true
	c.closeDoneLocked()
	left := c.unread.drop()
	if c.reportTimer != nil {
		c.reportTimer.Stop()
	}
	c.mu.Unlock()
	signal(c.readable)
	c.readDeadline.set(time.Time{})
	c.writeDeadline.set(time.Time{})
	c.buffer.add(-1, -left)
	if c.carrier != nil {
		c.carrier.Close()
	}
	return nil
}

func (c *Conn) closeDoneLocked() {
	if !isClosed(c.done) {
		close(c.done)
	}
}

// LocalAddr returns the tunnel's local address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns an [Addr].
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(c.readDeadline, t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.writeDeadline, t) }

func (c *Conn) setDeadline(of *deadline, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	of.set(t)
	return nil
}

// opError returns an error in the form of package net.
func (c *Conn) opError(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: c.remote.Network(), Source: c.local, Addr: c.remote, Err: err}
}
