// Package spdy is the client side of SPDY/3.1 (https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1) as
// Kubernetes nodes speak it for port-forwarding. A [Session] carries connections to the ports of one pod over one
// WebSocket. A connection is a [Pair] of streams: its bytes go over the data stream, and over the error stream the node
// reports why it failed.
//
// # Goroutines
//
// A session has two. One reads frames and passes their payload to the pair's [Receiver]. The other is the only writer; it
// alternates between one message of control frames and one of data, so that neither starves the other. Callers never wait for
// a socket: [Session.Open] and [Pair.Send] wait on channels until their context, deadline or connection ends.
//
// # Order
//
// Streams get increasing numbers when their opening is queued, and are opened in that order. An opening that was not written can
// be withdrawn, which leaves a gap. A FIN or RST_STREAM is written after the queued data of its pair; other control frames go
// first. Replies to the node are state, not queue entries: the last ping to answer, the set of streams to reset.
//
// # Flow control
//
// Nodes and API servers do not support WINDOW_UPDATE, so streams have no flow control. A receiver without room stops the reading
// goroutine, and TCP then stops the node; the receivers of a session share a buffer that decides when. [Receiver.Behind] marks a
// session that new connections should avoid.
//
// # Time-outs
//
// A session ends when its node has answered pings and then sends nothing for 55 seconds. (The WebSocket detects a vanished API
// server.) A node distributes frames to a few workers, and one of them blocks forever when a connection ended in the pod with
// unread input; other connections of the same worker then hang, which the client cannot detect. Therefore a session that has
// carried a connection gives the next one five seconds to be accepted; after that it is retired: it accepts no new
// connections, and the caller opens another session. The first connection of a session has a minute.
//
// # Bounds on memory
//
// A session holds at most four messages of data of up to 32 KiB, one message of control frames, the state of open pairs, and of
// up to 100 pairs that are closed here but not by the node. A node can add at most 64 streams of its own to reject; more end the
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
	lastUsableStream   = 1<<30 - 1       // after it a session takes no more connections; numbers are never used twice
	maxDiscarded       = 1 << 20         // bytes for pairs that are closed here before the session is retired
	maxHalfClosed      = 100             // pairs that are closed here and that the node has not ended
	acceptTimeout      = 5 * time.Second // of a connection in a session that has carried others
	firstAcceptTimeout = time.Minute     // in a session that has not
	closeTimeout       = 2 * time.Second // for the node to end pairs that were closed here, and to close the connection
)

// ErrRetired is the error of a session that accepts no more connections: open another.
var ErrRetired = errors.New("the tunnel accepts no more connections")

// ErrNotAccepted is the error of a node that has not accepted the first connection of a session.
var ErrNotAccepted = fmt.Errorf("the node has not accepted the connection within %v", firstAcceptTimeout)

// Conn carries a session. One goroutine reads and one writes; Close may be called at any time and wakes both.
type Conn interface {
	// Read reads the bytes of the node's messages, one message after the other.
	io.Reader
	// WriteMessage sends one message. It does not retain p.
	WriteMessage(p []byte) error
	// WriteClose sends a close message, after which the peer closes the connection.
	WriteClose() error
	// Close ends the connection at once.
	Close()
}

// Receiver receives what the node sends for one pair. A session calls Break from any goroutine, Behind from those that call
// [Session.Load], which Behind must not use, and the rest from the reading goroutine.
type Receiver interface {
	// Behind reports whether the receiver's reader lags.
	Behind() bool
	// WaitRoom waits until the receiver has room, or done is closed.
	WaitRoom(done <-chan struct{})
	// Receive receives data, which it copies. It reports false if nobody will read it.
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
	// BreakError returns the error of pairs that break with the session because of err.
	BreakError func(err error) error
}

// Session carries connections to one pod's ports. It is safe for concurrent use.
type Session struct {
	conn    Conn
	options Options
	done    chan struct{} // closed at the end
	end     sync.Once
	slots   chan struct{} // has one for each message in data
	wake    chan struct{} // has one when there may be something to write

	// These belong to the reading goroutine.
	frames  frameReader
	scratch []byte
	peerID  uint32 // the last stream that the node opened

	lastRead atomic.Int64 // when bytes last arrived from the node; 0 while a receiver without room stops reading

	mu           sync.Mutex
	pairs        map[uint32]*Pair // by the number of each of their streams
	lastID       uint32           // the last stream of this side
	hasOpened    bool             // the first stream is opened
	hasAccepted  bool             // the node has accepted a pair
	answersPings bool             // the node has answered a ping
	live         int              // pairs that are not closed here
	halfClosed   int              // pairs that are closed here, but not by the node
	discarded    int              // bytes for closed pairs
	retired      bool
	closing      bool // the close message is due or sent
	closeTimer   *time.Timer
	err          error
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

// Open opens a connection to a port. It returns when the node has accepted it, before the node connects to the port: its
// error arrives at the receiver. The caller closes the pair. The error is [ErrRetired] if another session may succeed.
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
	case <-pair.answered:
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

// enqueue queues the opening of a pair and returns how long to wait.
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
		session: s, port: port, to: to, answered: make(chan struct{}), errorID: s.lastID + 2, dataID: s.lastID + 4,
	}
	if s.lastID == 0 {
		pair.errorID, pair.dataID = 1, 3
	}
	s.lastID = pair.dataID
	s.retired = s.lastID >= lastUsableStream
	s.pairs[pair.errorID], s.pairs[pair.dataID] = pair, pair
	s.live++
	s.openings = append(s.openings, pair)
	signal(s.wake)
	if s.hasAccepted {
		return pair, acceptTimeout, nil
	}
	return pair, firstAcceptTimeout, nil
}

// Load describes how busy a session is.
type Load struct {
	Live      int  // pairs that are not closed here
	Accepting bool // it accepts new connections
	Behind    bool // the reader of a pair lags, and may make new ones wait
}

// Load returns how busy the session is.
func (s *Session) Load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	load := Load{Live: s.live, Accepting: !s.retired && s.err == nil}
	for _, pair := range s.pairs {
		load.Behind = load.Behind || pair.to.Behind()
	}
	return load
}

// Retire makes the session accept no more connections. It closes itself after the last one.
func (s *Session) Retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retireLocked()
}

func (s *Session) retireLocked() {
	s.retired = true
	for _, pair := range s.openings {
		pair.answerLocked(ErrRetired)
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
		s.err, s.retired = err, true
		if s.closeTimer != nil {
			s.closeTimer.Stop()
		}
		open := s.pairsLocked(0)
		s.pairs, s.outbox = map[uint32]*Pair{}, outbox{}
		for _, pair := range open {
			pair.answerLocked(err)
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

// pairsLocked returns the pairs with streams above last, in the order of their numbers.
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

// signal wakes the goroutine that waits on c, a channel of capacity one, or the next one that will.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
