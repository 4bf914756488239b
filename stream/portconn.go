package stream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// verdictWait is how long an end of the data waits for the word whether it is an end or a failure, which comes on
// another channel: at once from all nodes known, but before the data's end from some and after it from others.
const verdictWait = 5 * time.Second

// carrier is the way that a connection's bytes take.
type carrier interface {
	// send sends at most messageSize bytes, which it copies. It waits until they are on their way, gone is closed or
	// late is, and tells in the last case of os.ErrDeadlineExceeded.
	send(p []byte, gone, late <-chan struct{}) error
	// finish says that nothing more will be sent.
	finish(gone <-chan struct{}) error
	// leave is called once, when the connection is closed, with how much was left unread.
	leave(unread int)
	// taken tells how much has been read.
	taken(bytes int)
}

// portConn is one connection to a port of a pod, whatever carries it.
type portConn struct {
	carrier carrier
	backlog *backlog
	local   net.Addr
	remote  portAddr

	readBy, writeBy *deadline
	ready           chan struct{} // has one when there is something to read, or the end
	gone            chan struct{} // closed when nothing can be written any more

	mu      sync.Mutex
	unread  queue
	ended   bool   // the peer has sent its last byte
	judged  bool   // the peer has said how it went
	text    []byte // what it said: "" is well
	failure error
	shut    bool // by CloseWrite
	closed  bool // by Close
	wait    *time.Timer
	onClose []func()
}

func newPortConn(remote portAddr, local net.Addr, unread *backlog) *portConn {
	return &portConn{
		backlog: unread, local: local, remote: remote, readBy: newDeadline(), writeBy: newDeadline(),
		ready: make(chan struct{}, 1), gone: make(chan struct{}),
	}
}

// portAddr is the address of a pod's port.
type portAddr struct {
	pod  string
	port uint16
}

func (portAddr) Network() string  { return "portforward" }
func (a portAddr) String() string { return net.JoinHostPort(a.pod, fmt.Sprint(a.port)) }

// Read implements io.Reader. io.EOF itself is the end that the peer meant.
func (c *portConn) Read(p []byte) (int, error) {
	for {
		late := c.readBy.wait()
		if isClosed(late) {
			return 0, c.failed("read", os.ErrDeadlineExceeded)
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

// take reads what is there, or the error for which there is no more.
func (c *portConn) take(p []byte) (int, error) {
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
		c.carrier.taken(n)
		return n, nil
	}
	if err == io.EOF { //nolint:errorlint // itself, and not one within another
		return 0, err
	}
	return 0, c.failed("read", err)
}

// endLocked is why nothing more will be read once the queue is empty; nil while there may be more.
func (c *portConn) endLocked() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.failure != nil:
		return c.failure
	case c.ended && c.judged:
		return io.EOF
	default:
		return nil
	}
}

// Write implements io.Writer.
func (c *portConn) Write(p []byte) (int, error) {
	written := 0
	for {
		late := c.writeBy.wait()
		err := c.writable()
		if err == nil && isClosed(late) {
			err = os.ErrDeadlineExceeded
		}
		if err != nil || written == len(p) {
			return written, c.failed("write", err)
		}
		piece := p[written:min(len(p), written+messageSize)]
		if err := c.carrier.send(piece, c.gone, late); err != nil {
			if writable := c.writable(); writable != nil {
				err = writable // the cause of it
			}
			return written, c.failed("write", err)
		}
		written += len(piece)
	}
}

// writable is why nothing can be written, nil if it can.
func (c *portConn) writable() error {
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
func (c *portConn) CloseWrite() error {
	if err := c.writable(); err != nil {
		return c.failed("close", err)
	}
	c.shutting(true)
	err := c.carrier.finish(c.gone)
	if err != nil {
		c.shutting(false)
	}
	return c.failed("close", err)
}

func (c *portConn) shutting(shut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = shut
}

// Close ends the connection both ways. What was written before is still sent.
func (c *portConn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.failed("close", net.ErrClosed)
	}
	c.closed = true
	c.closeGoneLocked()
	left := c.unread.drop()
	if c.wait != nil {
		c.wait.Stop()
	}
	calls := c.onClose
	c.mu.Unlock()
	signal(c.ready)
	c.readBy.stop()
	c.writeBy.stop()
	c.carrier.leave(left)
	for _, call := range calls {
		call()
	}
	return nil
}

func (c *portConn) closeGoneLocked() {
	if !isClosed(c.gone) {
		close(c.gone)
	}
}

func (c *portConn) LocalAddr() net.Addr  { return c.local }
func (c *portConn) RemoteAddr() net.Addr { return c.remote }

func (c *portConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *portConn) SetReadDeadline(t time.Time) error { return c.setDeadline(c.readBy, t) }

func (c *portConn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.writeBy, t) }

func (c *portConn) setDeadline(of *deadline, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.failed("set", net.ErrClosed)
	}
	of.set(t)
	return nil
}

// failed is the error of an operation, as connections of the package net have it.
func (c *portConn) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: c.remote.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// admits waits until the connection may be sent more, or is past caring.
func (c *portConn) admits(done <-chan struct{}) {
	for !isClosed(done) {
		c.mu.Lock()
		unread, over := c.unread.size, c.closed
		c.mu.Unlock()
		if over || c.backlog.admits(unread) {
			return
		}
		select {
		case <-c.backlog.room:
		case <-done:
		}
	}
}

// behind tells whether the reader lags.
func (c *portConn) behind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unread.size >= ownBacklog
}

// received takes what the peer sent. It reports false where nobody wants it any more.
func (c *portConn) received(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ended || c.failure != nil {
		return false
	}
	c.unread.write(p)
	c.backlog.grown(len(p))
	signal(c.ready)
	return true
}

// maxPortError bounds what a node may say of a failure.
const maxPortError = 4 << 10

// told takes what the peer says of a failure.
func (c *portConn) told(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p[:min(len(p), maxPortError-len(c.text))]...)
}

// finished is called when the peer has sent its last byte.
func (c *portConn) finished() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if !c.judged && !c.closed && c.wait == nil {
		c.wait = time.AfterFunc(verdictWait, c.judge)
	}
	signal(c.ready)
}

// judge is called when the peer has said all that it will say of failures.
func (c *portConn) judge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judged = true
	if c.wait != nil {
		c.wait.Stop()
	}
	if len(c.text) > 0 {
		c.failLocked(&refusedError{strings.TrimSpace(string(c.text))})
	}
	signal(c.ready)
}

// fail ends the connection for a reason that what the peer said goes before.
func (c *portConn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.text) > 0 {
		err = &refusedError{strings.TrimSpace(string(c.text))}
	}
	// An end that the peer meant stays one, though the tunnel ends after it.
	if c.ended && c.judged {
		return
	}
	c.failLocked(err)
}

func (c *portConn) failLocked(err error) {
	if c.failure == nil {
		c.failure = err
	}
	if c.wait != nil {
		c.wait.Stop()
	}
	c.closeGoneLocked()
	signal(c.ready)
}

// refused tells whether the node said that it failed.
func (c *portConn) refused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.text) > 0
}

// refusedError is what a node says of a connection that it could not open or that broke.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// Is finds a refusal of the port in the node's words.
func (e *refusedError) Is(target error) bool {
	return target == syscall.ECONNREFUSED && strings.Contains(e.text, "connection refused")
}
