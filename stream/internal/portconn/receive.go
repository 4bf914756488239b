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
	// reportTimeout is how long the end of the data waits for the peer's report on the other channel, which nodes send at
	// about the same time, some before it and some after it.
	reportTimeout = 5 * time.Second
	// maxErrorText is how much of a peer's error is kept, and maxShownText how much an error shows.
	maxErrorText, maxShownText = 4 << 10, 1 << 10
)

// errDataAfterEnd is the error of a connection that continued after its end: data is missing or came too late.
var errDataAfterEnd = fmt.Errorf("the peer sent data after the end of the data: %w", io.ErrUnexpectedEOF)

// WaitRoom waits until the connection may receive more, is closed, or done is.
func (c *Conn) WaitRoom(done <-chan struct{}) {
	for !isClosed(done) {
		c.mu.Lock()
		unread, closed := c.unread.size, c.closed
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

// Receive buffers a copy of p. It reports false if nobody will read it. Data after the end of the data breaks the connection,
// unless the peer has already reported an end without an error.
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

// EndErrors is called when the peer has reported how the connection ended.
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

// Break ends the connection, with the peer's error if it has sent one. See [BreakError].
func (c *Conn) Break(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errorText) > 0 {
		err = newPeerError(c.errorText)
	}
	if c.dataEnded && c.errorsEnded {
		return // the end that the peer intended, whatever follows
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

// peerError is a node's error about a connection that it could not open or that broke.
type peerError struct {
	text                string
	isConnectionRefused bool
}

func newPeerError(text []byte) error {
	shown := cmp.Or(sanitize.Text(string(text), maxShownText), "the node reports an error without a text")
	return &peerError{shown, strings.Contains(string(text), "connection refused")}
}

func (e *peerError) Error() string { return e.text }

// Is reports whether target is syscall.ECONNREFUSED and the node reports that no program listens at the port.
func (e *peerError) Is(target error) bool {
	return target == syscall.ECONNREFUSED && e.isConnectionRefused
}

// BreakError returns the error of connections to a pod whose tunnel ended before them because of err. It is never io.EOF, which
// would look like an end that the pod intended.
func BreakError(pod string, err error) error {
	const text = "the connection to pod %s broke off: %w"
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf(text, pod, io.ErrUnexpectedEOF)
	case errors.Is(err, net.ErrClosed):
		return fmt.Errorf(text, pod, err)
	default:
		// As text, which may be the peer's: callers would take a wrapped time-out of pings for that of their own deadline.
		return fmt.Errorf(text+": %s", pod, io.ErrUnexpectedEOF, sanitize.Text(err.Error(), maxShownText))
	}
}
