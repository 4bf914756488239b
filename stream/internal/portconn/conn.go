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

// Carrier moves the bytes that a connection writes.
type Carrier interface {
	// Send sends some of p, which it copies, and returns how much. It waits until the bytes are on their way, gone is
	// closed (net.ErrClosed) or late is (os.ErrDeadlineExceeded).
	Send(p []byte, gone, late <-chan struct{}) (int, error)
	// CloseWrite tells the peer, after what was sent, that nothing follows. It does not wait.
	CloseWrite() error
	// Close ends the connection both ways, after what was sent. It does not wait, and is called once.
	Close()
}

// Conn is one connection to a port of a pod. It is safe for concurrent use.
type Conn struct {
	backlog *Backlog
	local   net.Addr
	remote  Addr
	carrier Carrier

	readBy, writeBy *deadline
	ready           chan struct{} // has one when there is something to read, or the end
	gone            chan struct{} // closed when nothing can be written any more
	writing         chan struct{} // has one while somebody writes: what Write is given stays together

	mu       sync.Mutex
	unread   queue
	ended    bool   // the peer has sent its last byte
	reported bool   // the peer has said how the connection ended
	text     []byte // what it said: nothing if all is well
	failure  error
	shut     bool // by CloseWrite
	closed   bool // by Close
	report   *time.Timer
	onClose  []func()
}

// New returns a connection that shares a tunnel with others of the same backlog. It receives at once; before anything
// else it needs SetCarrier. Close it also if it never gets one.
func New(remote Addr, local net.Addr, backlog *Backlog) *Conn {
	backlog.join(1)
	return &Conn{
		backlog: backlog, local: local, remote: remote, readBy: newDeadline(), writeBy: newDeadline(),
		ready: make(chan struct{}, 1), gone: make(chan struct{}), writing: make(chan struct{}, 1),
	}
}

// SetCarrier sets what sends. It is called before the connection is used.
func (c *Conn) SetCarrier(carrier Carrier) { c.carrier = carrier }

// OnClose has f called at the end of Close. It is called before the connection is used.
func (c *Conn) OnClose(f func()) { c.onClose = append(c.onClose, f) }

// Addr is the address of a pod's port.
type Addr struct {
	Pod  string
	Port uint16
}

// Network returns "portforward".
func (Addr) Network() string { return "portforward" }

// String returns the address as pod:port.
func (a Addr) String() string { return net.JoinHostPort(a.Pod, fmt.Sprint(a.Port)) }

// Read implements io.Reader. io.EOF itself is the end that the peer meant.
func (c *Conn) Read(p []byte) (int, error) {
	for {
		late := c.readBy.wait()
		if isClosed(late) {
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		}
		n, err := c.take(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		select {
		case <-c.ready:
		case <-late:
		}
	}
}

// take reads what has arrived, or returns the error because of which nothing more will.
func (c *Conn) take(p []byte) (int, error) {
	c.mu.Lock()
	n := 0
	if !c.closed {
		n = c.unread.read(p)
	}
	err := c.endLocked()
	more := c.unread.size > 0 || err != nil
	c.mu.Unlock()
	if more {
		signal(c.ready) // for the next reader
	}
	if n > 0 {
		c.backlog.grow(-n)
		return n, nil
	}
	if err == io.EOF { //nolint:errorlint // itself, and not one within another
		return 0, err
	}
	return 0, c.opError("read", err)
}

// endLocked returns why nothing more will be read once the queue is empty; nil while there may be more.
func (c *Conn) endLocked() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.failure != nil:
		return c.failure
	case c.ended && c.reported:
		return io.EOF
	default:
		return nil
	}
}

// Write implements io.Writer.
func (c *Conn) Write(p []byte) (int, error) {
	late := c.writeBy.wait()
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-c.gone: // writable returns why
	case <-late:
		return 0, c.opError("write", os.ErrDeadlineExceeded)
	}
	written := 0
	for {
		late := c.writeBy.wait()
		err := c.writable()
		if err == nil && isClosed(late) {
			err = os.ErrDeadlineExceeded
		}
		if err != nil || written == len(p) {
			return written, c.opError("write", err)
		}
		n, err := c.carrier.Send(p[written:], c.gone, late)
		written += n
		if err != nil {
			if cause := c.writable(); cause != nil {
				err = cause
			}
			return written, c.opError("write", err)
		}
	}
}

// writable returns why nothing can be written, nil if it can.
func (c *Conn) writable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.endLocked()
	if errors.Is(err, io.EOF) || err == nil && c.shut {
		return syscall.EPIPE
	}
	return err
}

// CloseWrite tells the peer that nothing more will be written; reading goes on. It is an error over the legacy
// channels, which cannot say so.
func (c *Conn) CloseWrite() error {
	if err := c.writable(); err != nil {
		return c.opError("close", err)
	}
	err := c.carrier.CloseWrite()
	if err == nil {
		c.mu.Lock()
		c.shut = true
		c.mu.Unlock()
	}
	return c.opError("close", err)
}

// Close ends the connection both ways. What was written before is still sent.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.opError("close", net.ErrClosed)
	}
	c.closed = true
	c.closeGoneLocked()
	left := c.unread.drop()
	if c.report != nil {
		c.report.Stop()
	}
	c.mu.Unlock()
	signal(c.ready)
	c.readBy.stop()
	c.writeBy.stop()
	c.backlog.grow(-left)
	c.backlog.join(-1)
	if c.carrier != nil {
		c.carrier.Close()
	}
	for _, call := range c.onClose {
		call()
	}
	return nil
}

func (c *Conn) closeGoneLocked() {
	if !isClosed(c.gone) {
		close(c.gone)
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
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(c.readBy, t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.writeBy, t) }

func (c *Conn) setDeadline(of *deadline, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	of.set(t)
	return nil
}

// opError returns the error of an operation as connections of the package net have it.
func (c *Conn) opError(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: c.remote.Network(), Source: c.local, Addr: c.remote, Err: err}
}
