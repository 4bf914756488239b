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
	// lastUsableStream is the number after which a session takes no more connections; numbers are never used twice.
	lastUsableStream = 1<<30 - 1
	// maxUnwanted is how many bytes a node may send for pairs that are closed here before the session is retired.
	maxUnwanted = 1 << 20
	// maxHalfClosed is how many pairs may be closed here that the node has not ended.
	maxHalfClosed = 100
	// acceptTimeout is how long a node may take to accept a connection in a session that has carried others.
	acceptTimeout = 5 * time.Second
	// firstAcceptTimeout is how long it may take in a session that has not.
	firstAcceptTimeout = time.Minute
	// closeTimeout is how long a node may take to end what was closed here, and to close the connection.
	closeTimeout = 2 * time.Second
)

// ErrRetired is the error of a session that takes no more connections: open another.
var ErrRetired = errors.New("the tunnel takes no more connections")

// ErrNotAccepted is the error of a node that has not accepted the first connection of a session.
var ErrNotAccepted = fmt.Errorf("the node has not accepted the connection within %v", firstAcceptTimeout)

// Conn is what carries a session. One goroutine reads and one writes; Close may be called beside them and wakes both.
type Conn interface {
	// Read reads the bytes of the node's messages, one message after the other.
	io.Reader
	// WriteMessage sends one message. It does not keep p.
	WriteMessage(p []byte) error
	// WriteClose tells the peer that no message follows, upon which it closes the connection.
	WriteClose() error
	// Close ends the connection at once.
	Close()
}

// Receiver takes what the node sends for one pair. A session calls Break from any goroutine, Behind from those that call
// [Session.Load], which Behind must not use, and the rest from the goroutine that reads.
type Receiver interface {
	// Behind reports whether the receiver's reader lags.
	Behind() bool
	// WaitRoom waits until the receiver can take more, or done is closed.
	WaitRoom(done <-chan struct{})
	// Receive takes data, which it copies. It reports false if nobody will read it.
	Receive(p []byte) bool
	// ReceiveError takes the text of an error, or a part of it.
	ReceiveError(p []byte)
	// EndData is called after the last data.
	EndData()
	// EndErrors is called when the node has sent all that it will send about errors.
	EndErrors()
	// Reset is called when the node has given the connection up.
	Reset(status uint32)
	// Break is called when the session has ended or excluded the pair.
	Break(err error)
}

// Options configures a session. All functions are called without locks.
type Options struct {
	// OnChange is called when a pair was closed and when the session ended.
	OnChange func()
	// Broken returns the error of pairs that break with the session because of err.
	Broken func(err error) error
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

	heard atomic.Int64 // when bytes last came from the node; 0 while nothing is read because a receiver is behind

	mu         sync.Mutex
	pairs      map[uint32]*Pair // by the number of each of their streams
	lastID     uint32           // the last stream of this side
	begun      bool             // the first has been opened
	carried    bool             // the node has accepted a pair
	answers    bool             // the node has answered a ping
	live       int              // pairs that are not closed here
	halfClosed int              // pairs that are closed here and not ended by the node
	unwanted   int
	retired    bool
	hangingUp  bool
	hangUp     *time.Timer
	err        error
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
	s.frames.in = heardReader{s}
	s.heard.Store(time.Now().UnixNano())
	return s
}

// Open opens a connection to a port. It returns when the node has accepted it, which says nothing about the port: whether
// anybody listens there is known once something is read or written. The caller closes the pair. The error is [ErrRetired]
// if another session may succeed.
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
	case <-pair.accepted:
		return pair, nil
	case <-pair.refused:
		err = pair.err
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

// enqueue has a pair opened and returns for how long to wait.
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
		session: s, port: port, to: to, accepted: make(chan struct{}), refused: make(chan struct{}),
		errorID: s.lastID + 2, dataID: s.lastID + 4,
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
	if s.carried {
		return pair, acceptTimeout, nil
	}
	return pair, firstAcceptTimeout, nil
}

// Load describes how busy a session is.
type Load struct {
	Live      int  // pairs that are not closed here
	Accepting bool // it takes new connections
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

// Retire lets the session take no more connections. It closes itself when the last is closed.
func (s *Session) Retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retireLocked()
}

func (s *Session) retireLocked() {
	s.retired = true
	for _, pair := range s.openings {
		pair.refuseLocked(ErrRetired)
	}
	s.openings = nil
	s.settleLocked()
}

// settleLocked hangs up a retired session without connections, once the node has ended them too or has had the time to.
func (s *Session) settleLocked() {
	switch {
	case !s.retired || s.live > 0 || s.err != nil || s.hangingUp:
	case s.halfClosed == 0:
		s.hangUpLocked()
	case s.hangUp == nil:
		s.hangUp = time.AfterFunc(closeTimeout, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.hangingUp && s.err == nil {
				s.hangUpLocked()
			}
		})
	}
}

func (s *Session) hangUpLocked() {
	s.hangingUp = true
	if s.hangUp != nil {
		s.hangUp.Stop()
	}
	s.hangUp = time.AfterFunc(closeTimeout, func() { s.Close(io.ErrUnexpectedEOF) })
	signal(s.wake)
}

// Close ends the session at once. Its pairs break with [Options.Broken] of err.
func (s *Session) Close(err error) {
	s.end.Do(func() {
		err = s.options.Broken(err)
		s.mu.Lock()
		s.err, s.retired = err, true
		if s.hangUp != nil {
			s.hangUp.Stop()
		}
		for _, pair := range s.openings {
			pair.refuseLocked(err)
		}
		open := s.pairsLocked(0)
		s.pairs, s.outbox = map[uint32]*Pair{}, outbox{}
		for _, pair := range open {
			pair.refuseLocked(err)
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

// signal wakes the goroutine that waits on c, a channel with room for one, or the next that will.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
