package portconn

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/anykind/anykind/internal/sanitize"
)

const (
	// reportTimeout is how long an end of the data waits for the peer's report, which comes on another channel: at once
	// from all nodes known, but before the end of the data from some and after it from others.
	reportTimeout = 5 * time.Second
	// maxText bounds how much is kept of what a peer says about a failure, and maxShownText how much an error shows.
	maxText, maxShownText = 4 << 10, 1 << 10
)

// errAfterEnd is the error of a connection whose end was none: something is missing, or came too late.
var errAfterEnd = fmt.Errorf("the peer sent data after the end of the data: %w", io.ErrUnexpectedEOF)

// WaitRoom waits until the connection may be sent more, is closed, or done is.
func (c *Conn) WaitRoom(done <-chan struct{}) {
	for !isClosed(done) {
		c.mu.Lock()
		unread, closed := c.unread.size, c.closed
		c.mu.Unlock()
		if closed || c.backlog.admits(unread) {
			return
		}
		select {
		case <-c.backlog.room:
		case <-done:
		}
	}
}

// Behind reports whether the reader lags.
func (c *Conn) Behind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unread.size >= ownBacklog
}

// Receive takes what the peer sent, which it copies. It reports false if nobody will read it. Data after the end of the
// data breaks the connection, unless the peer has reported already that it ended well.
func (c *Conn) Receive(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ended || c.failure != nil {
		if !c.closed && !c.reported {
			c.failLocked(errAfterEnd)
		}
		return false
	}
	c.unread.write(p)
	c.backlog.grow(len(p))
	signal(c.ready)
	return true
}

// ReceiveError takes what the peer says about a failure.
func (c *Conn) ReceiveError(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p[:min(len(p), maxText-len(c.text))]...)
}

// EndData is called when the peer has sent its last byte.
func (c *Conn) EndData() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if !c.reported && !c.closed && c.report == nil {
		c.report = time.AfterFunc(reportTimeout, c.EndErrors)
	}
	signal(c.ready)
}

// EndErrors is called when the peer has said all that it will say about failures.
func (c *Conn) EndErrors() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reported = true
	if c.report != nil {
		c.report.Stop()
	}
	if len(c.text) > 0 {
		c.failLocked(newPeerError(c.text))
	}
	signal(c.ready)
}

// Reset is called when the peer has given the connection up.
func (c *Conn) Reset(status uint32) {
	c.fail(fmt.Errorf("the node reset the connection (SPDY status %d): %w", status, syscall.ECONNRESET))
}

// Break is called when the tunnel has ended. [BrokenError] returns errors for it.
func (c *Conn) Break(err error) { c.fail(err) }

// fail ends the connection, with what the peer has said if it has said something.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.text) > 0 {
		err = newPeerError(c.text)
	}
	if c.ended && c.reported {
		return // the end that the peer meant, whatever comes after it
	}
	c.failLocked(err)
}

func (c *Conn) failLocked(err error) {
	if c.failure == nil {
		c.failure = err
	}
	if c.report != nil {
		c.report.Stop()
	}
	c.closeGoneLocked()
	signal(c.ready)
}

// peerError is what a node says about a connection that it could not open or that broke.
type peerError struct {
	text    string
	refused bool
}

func newPeerError(text []byte) error {
	shown := cmp.Or(sanitize.Text(string(text), maxShownText), "the node reports an error without a text")
	return &peerError{shown, strings.Contains(string(text), "connection refused")}
}

func (e *peerError) Error() string { return e.text }

// Is reports whether target is syscall.ECONNREFUSED and the node says that nobody listens at the port.
func (e *peerError) Is(target error) bool { return target == syscall.ECONNREFUSED && e.refused }

// BrokenError returns the error of connections to a pod whose tunnel ended before them because of err. It is never io.EOF,
// which would look like an end that the pod meant.
func BrokenError(pod string, err error) error {
	const text = "the connection to pod %s broke off: %w"
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf(text, pod, io.ErrUnexpectedEOF)
	case errors.Is(err, net.ErrClosed):
		return fmt.Errorf(text, pod, err)
	default:
		// In words only, which may be the peer's: a caller that waits for a deadline of its own would take that of a ping
		// for it.
		return fmt.Errorf(text+": %s", pod, io.ErrUnexpectedEOF, sanitize.Text(err.Error(), maxShownText))
	}
}
