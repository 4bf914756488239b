// Package spdy is the client side of SPDY/3.1 (https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1), in Kubernetes
// nodes' dialect for port-forwarding. A [Session] carries connections to the ports of a pod over a WebSocket. A connection is a
// [Pair] of streams: a data stream, and an error stream for the node's errors.
//
// # Goroutines
//
// A session has two goroutines. The reader passes the payload of frames to the pair's [Receiver]. The writer alternates between a
// message of control frames and a message of data, so that neither starves. Callers never wait for a socket: [Session.Open] and
// [Pair.Send] wait on channels until their context, deadline or connection ends.
//
// # Order
//
// Streams get increasing numbers when their opening is queued, and are opened in that order. A queued opening can be withdrawn,
// with a gap in the numbers. A FIN or RST_STREAM is written after the queued data of its pair; all remaining control frames go
// first. Replies to the node are state, not queue entries: the last ping without a reply, the set of streams to reset.
//
// # Flow control
//
// Nodes and API servers do not support WINDOW_UPDATE, so streams have no flow control. A receiver without room stops the reading
// goroutine, and TCP then stops the node; the shared buffer of the session's receivers decides when. [Receiver.Behind] marks a
// session to be avoided for new connections.
//
// # Time-outs
//
// A session ends when its node has responded to pings and then sends nothing for 55 seconds. (The WebSocket detects a vanished API
// server.) A node distributes frames to a few workers. A connection that ends in the pod with unread input blocks its worker
// forever. All connections of this worker then hang, and the client cannot detect it. Therefore connections that are opened
// after the first acceptance must be accepted within five seconds. Otherwise the session is retired: it accepts no more connections, and the
// caller opens a new session. Earlier connections have a minute.
//
// # Bounds on memory
//
// A session holds at most five messages of data of up to 32 KiB, one of which is being written, a message of control frames, the state of open pairs, and of up
// to 100 pairs closed by this side but not by the node. A node can add at most 64 streams of its own to reject; more end the
// session. More than 1 MiB of data for closed pairs retires it. Received data is held by receivers, within their bounds.
package spdy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

const (
	lastUsableStream   = 1<<30 - 1       // the session takes no connections after it; numbers are never used twice
	maxDiscarded       = 1 << 20         // bytes for closed pairs before the session is retired
	maxHalfClosed      = 100             // pairs closed by this side but not by the node
	acceptTimeout      = 5 * time.Second // of a connection after the first acceptance
	firstAcceptTimeout = time.Minute     // of earlier connections
	closeTimeout       = 2 * time.Second // for the node to end pairs closed by this side, and to close the connection
)

// ErrRetired is the error of a retired session: open a new session.
var ErrRetired = errors.New("the tunnel accepts no more connections")

// ErrNotAccepted is the error of a node without a reply to the first connection of a session.
var ErrNotAccepted = fmt.Errorf("the node has not accepted the connection within %v", firstAcceptTimeout)

// Conn carries a session. A goroutine reads and a goroutine writes; Close may be called at any time and wakes both.
type Conn interface {
	// Read reads the bytes of consecutive messages of the node.
	io.Reader
	// WriteMessage sends a message. It does not retain p.
	WriteMessage(p []byte) error
	// WriteClose sends a close message. The peer then closes the connection.
	WriteClose() error
	// Close ends the connection at once.
	Close()
}

// Receiver receives the node's data for a pair. Break is called from any goroutine, Behind from callers of [Session.Load], and
// all remaining methods from the reading goroutine. Behind must not call Session.Load.
type Receiver interface {
	// Behind reports whether the receiver's reader lags.
	Behind() bool
	// WaitRoom waits until the receiver has room, or done is closed.
	WaitRoom(done <-chan struct{})
	// Receive copies data. It reports false if there is no reader any more.
	Receive(p []byte) bool
	// ReceiveError receives the text of an error, or a part of it.
	ReceiveError(p []byte)
	// EndData is called after the last data.
	EndData()
	// EndErrors is called after the last error text.
	EndErrors()
	// Reset is called when the node has aborted the connection.
	Reset(status uint32)
	// Break is called when the session has ended or abandoned the pair.
	Break(err error)
}

// Options configures a session. All functions are called without locks.
type Options struct {
	// OnChange is called when a pair was closed and when the session ended.
	OnChange func()
	// BreakError returns the error of pairs broken by the session's err.
	BreakError func(err error) error
}

// Session carries connections to the ports of a pod. It is safe for concurrent use.
type Session struct {
	conn    Conn
	options Options
	done    chan struct{} // closed at the end
	end     sync.Once
	slots   chan struct{} // has an element for each message in data
	wake    chan struct{} // has an element when there may be something to write

	// These belong to the reading goroutine.
	frames  frameReader
	scratch []byte
	peerID  uint32 // the last stream opened by the node

	lastRead atomic.Int64 // time of the last bytes from the node; 0 while a receiver without room stops reading

	mu              sync.Mutex
	pairs           map[uint32]*Pair // by the numbers of both streams
	lastID          uint32           // the last stream of this side
	hasOpened       bool             // the first stream is opened
	hasAccepted     bool             // the node has accepted a pair
	respondsToPings bool             // the node has responded to a ping
	live            int              // pairs not closed by this side
	halfClosed      int              // pairs closed by this side, but not by the node
	discarded       int              // bytes for closed pairs
	retired         bool
	closing         bool // the close message is due or sent
	closeTimer      *time.Timer
	err             error
	outbox
}

// NewSession starts a session over conn.
func NewSession(conn Conn, options Options) *Session {
	s := newSession(conn, options)
	go s.read()
	go s.write()
	return s
}

func newSession(conn Conn, options Options) *Session {
	s := &Session{
		conn: conn, options: options, done: make(chan struct{}),
		slots: make(chan struct{}, maxQueued), wake: make(chan struct{}, 1),
		scratch: make([]byte, MaxData), pairs: map[uint32]*Pair{},
	}
	s.frames.in = timedReader{s}
	s.lastRead.Store(time.Now().UnixNano())
	return s
}

// Open opens a connection to a port. It returns when the node has accepted the connection, but before the node connects to the
// port: an error of the port arrives at the receiver. The caller closes the pair. The error is [ErrRetired] if a new session may
// succeed.
func (s *Session) Open(ctx context.Context, port uint16, to Receiver) (*Pair, error) {
	if err := retry.ContextError(ctx); err != nil {
		return nil, err
	}
	pair, limit, err := s.enqueue(port, to)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-pair.done:
		if err = pair.err; err == nil {
			return pair, nil
		}
	case <-ctx.Done():
		err = retry.ContextError(ctx)
	case <-timer.C:
		s.Retire()
		err = ErrRetired
		if limit == firstAcceptTimeout {
			err = ErrNotAccepted
		}
	}
	pair.Close()
	return nil, err
}

// enqueue queues the opening of a pair and returns its time-out.
func (s *Session) enqueue(port uint16, to Receiver) (*Pair, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, 0, s.err
	}
	if s.retired {
		return nil, 0, ErrRetired
	}
	pair := &Pair{
		session: s, port: port, to: to, done: make(chan struct{}), errorID: s.lastID + 2, dataID: s.lastID + 4,
	}
	if s.lastID == 0 {
		pair.errorID = 1
		pair.dataID = 3
	}
	s.lastID = pair.dataID
	s.retired = s.lastID >= lastUsableStream
	s.pairs[pair.errorID] = pair
	s.pairs[pair.dataID] = pair
	s.live++
	s.openings = append(s.openings, pair)
	signal(s.wake)
	if s.hasAccepted {
		return pair, acceptTimeout, nil
	}
	return pair, firstAcceptTimeout, nil
}

// Load is the load of a session.
type Load struct {
	Live      int  // pairs not closed by this side
	Accepting bool // it accepts new connections
	Behind    bool // the reader of a pair lags, and may make new connections wait
}

// Load returns the session's current load.
func (s *Session) Load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	load := Load{Live: s.live, Accepting: !s.retired && s.err == nil}
	for _, pair := range s.pairs {
		load.Behind = load.Behind || pair.to.Behind()
	}
	return load
}

// Retire makes the session accept no more connections. The session closes after the last connection.
func (s *Session) Retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retireLocked()
}

func (s *Session) retireLocked() {
	s.retired = true
	for _, pair := range s.openings {
		pair.finishLocked(ErrRetired)
	}
	s.openings = nil
	s.closeIfUnusedLocked()
}

// closeIfUnusedLocked closes a retired session without connections, after the node has ended them too or closeTimeout.
func (s *Session) closeIfUnusedLocked() {
	switch {
	case !s.retired || s.live > 0 || s.err != nil || s.closing:
	case s.halfClosed == 0:
		s.closeGracefullyLocked()
	case s.closeTimer == nil:
		s.closeTimer = time.AfterFunc(closeTimeout, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.closing && s.err == nil {
				s.closeGracefullyLocked()
			}
		})
	}
}

// closeGracefullyLocked makes the writer send a close message after everything else.
func (s *Session) closeGracefullyLocked() {
	s.closing = true
	if s.closeTimer != nil {
		s.closeTimer.Stop()
	}
	s.closeTimer = time.AfterFunc(closeTimeout, func() { s.Close(io.ErrUnexpectedEOF) })
	signal(s.wake)
}

// Close ends the session at once. Its pairs break with [Options.BreakError] of err.
func (s *Session) Close(err error) {
	s.end.Do(func() {
		err = s.options.BreakError(err)
		s.mu.Lock()
		s.err = err
		s.retired = true
		if s.closeTimer != nil {
			s.closeTimer.Stop()
		}
		open := s.pairsLocked(0)
		s.pairs = map[uint32]*Pair{}
		s.outbox = outbox{}
		for _, pair := range open {
			pair.finishLocked(err)
		}
		s.mu.Unlock()
		close(s.done)
		s.conn.Close()
		for _, pair := range open {
			pair.to.Break(err)
		}
		s.options.OnChange()
	})
}

// pairsLocked returns the pairs with streams above last, sorted by number.
func (s *Session) pairsLocked(last uint32) []*Pair {
	var found []*Pair
	for number, pair := range s.pairs {
		if number == pair.dataID && number > last {
			found = append(found, pair)
		}
	}
	slices.SortFunc(found, func(a, b *Pair) int { return int(a.dataID) - int(b.dataID) })
	return found
}

// signal wakes the current or next goroutine waiting on c, a channel of capacity one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
