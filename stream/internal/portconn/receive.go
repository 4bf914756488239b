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
	// reportTimeout limits the wait for the peer's error report after the end of the data. Nodes send the report at about the
	// same time as the end, before or after it.
	reportTimeout = 5 * time.Second
	// maxErrorText limits the kept text of a peer's error, and maxShownText the text in an error, in bytes.
	maxErrorText, maxShownText = 4 << 10, 1 << 10
)

// errDataAfterEnd is the error of a connection with data after its end: data is missing or came too late.
var errDataAfterEnd = fmt.Errorf("the peer sent data after the end of the data: %w", io.ErrUnexpectedEOF)

// WaitRoom waits until the connection may receive more or is closed, or until done is closed.
func (c *Conn) WaitRoom(done <-chan struct{}) {
	for !isClosed(done) {
		c.mu.Lock()
		unread := c.unread.size
		closed := c.closed
		c.mu.Unlock()
		if closed || c.buffer.admits(unread) {
			return
		}
		select {
		case <-c.buffer.room:
		case <-done:
		}
	}
}

// Behind reports whether the reader lags.
func (c *Conn) Behind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unread.size >= maxUnread
}

// Receive buffers a copy of p. It reports false if the connection has no reader any more. Data after the end of the data breaks
// the connection, unless the peer has already reported an end without an error.
func (c *Conn) Receive(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.dataEnded || c.failure != nil {
		if !c.closed && !c.errorsEnded {
			c.failLocked(errDataAfterEnd)
		}
		return false
	}
	c.unread.write(p)
	c.buffer.add(0, len(p))
	signal(c.readable)
	return true
}

// ReceiveError buffers a part of the text of the peer's error.
func (c *Conn) ReceiveError(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errorText = append(c.errorText, p[:min(len(p), maxErrorText-len(c.errorText))]...)
}

// EndData is called when the peer has sent its last byte.
func (c *Conn) EndData() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dataEnded = true
	if !c.errorsEnded && !c.closed && c.reportTimer == nil {
		c.reportTimer = time.AfterFunc(reportTimeout, c.EndErrors)
	}
	signal(c.readable)
}

// EndErrors is called at the end of the peer's error report.
func (c *Conn) EndErrors() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errorsEnded = true
	if c.reportTimer != nil {
		c.reportTimer.Stop()
	}
	if len(c.errorText) > 0 {
		c.failLocked(newPeerError(c.errorText))
	}
	signal(c.readable)
}

// Reset is called when the peer has aborted the connection.
func (c *Conn) Reset(status uint32) {
	c.Break(fmt.Errorf("the node reset the connection (SPDY status %d): %w", status, syscall.ECONNRESET))
}

// Break ends the connection, with the peer's error if there is one. See [BreakError].
func (c *Conn) Break(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errorText) > 0 {
		err = newPeerError(c.errorText)
	}
	if c.dataEnded && c.errorsEnded {
		return // the peer's intended end takes precedence
	}
	c.failLocked(err)
}

func (c *Conn) failLocked(err error) {
	if c.failure == nil {
		c.failure = err
	}
	if c.reportTimer != nil {
		c.reportTimer.Stop()
	}
	c.closeDoneLocked()
	signal(c.readable)
}

// peerError is a node's error about a connection that failed to open or broke.
type peerError struct {
	text                string
	isConnectionRefused bool
}

func newPeerError(text []byte) error {
	shown := cmp.Or(sanitize.Text(string(text), maxShownText), "the node reports an error without a text")
	return &peerError{shown, strings.Contains(string(text), "connection refused")}
}

func (e *peerError) Error() string { return e.text }

// Is reports whether target is syscall.ECONNREFUSED and no program listens at the port according to the node.
func (e *peerError) Is(target error) bool {
	return target == syscall.ECONNREFUSED && e.isConnectionRefused
}

// BreakError returns the error of a pod's connections broken by the tunnel's err. It is never io.EOF: that would look like an end
// intended by the pod.
func BreakError(pod string, err error) error {
	const text = "the connection to pod %s broke off: %w"
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf(text, pod, io.ErrUnexpectedEOF)
	case errors.Is(err, net.ErrClosed):
		return fmt.Errorf(text, pod, err)
	default:
		// The error is only text, because it may be the peer's. Callers would mistake a wrapped ping time-out for their own
		// deadline.
		return fmt.Errorf(text+": %s", pod, io.ErrUnexpectedEOF, sanitize.Text(err.Error(), maxShownText))
	}
}
