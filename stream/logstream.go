package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

// pieceSize is how much of a line is given at once.
const pieceSize = 64 << 10

// piece is a line of a log, or a part of a long one.
type piece struct {
	stamp time.Time
	// head is the time as the server wrote it, with the space behind it; empty but at a line's beginning.
	head []byte
	// text is valid until the next piece; it ends with a line break at a line's end.
	text []byte
}

// logStream reads one container's log line by line, over as many connections as it takes. One goroutine uses it.
type logStream struct {
	ctx    context.Context
	conn   *transport.Conn
	pod    string // the pod's path
	opts   LogOptions
	first  instance // whose log it is
	recent recentLines

	opening  chan opening  // gives the first connection where that was begun
	body     io.ReadCloser // nil while there is no connection
	lines    *bufio.Reader
	connects int
	clock    serverClock
	opened   time.Time      // when the last connection was
	begun    time.Time      // the server's time at the first connection
	asked    time.Time      // since when the connection was asked for
	oldest   time.Time      // of the first line that was given
	again    map[uint64]int // what the connection sends again; nil if it is the first
	retries  int            // since the last new line with a time
	denials  retry.Denials
	joined   bool  // there were logs before this one: 401 and 403 may pass
	verify   bool  // first is to be looked at once more
	broke    error // how the last connection ended; nil where it ended well
	final    bool  // the container has ended: the connection sends all that is left
	complete bool
	// waiting is since when next has waited for the server, in nanoseconds of the Unix epoch; 0 while it does not. It is
	// read by other goroutines.
	waiting atomic.Int64

	line    lineState
	cut     lineState // the line in which the last connection ended
	notice  uint64    // the hash of the last line, if it had no time: an error of the node, which repeats it
	count   int       // lines of the connection
	limited bool
	left    int64
}

// serverClock estimates the API server's clock by the Date of its last answer.
type serverClock struct {
	date time.Time // zero if unknown
	at   time.Time // when it came
	read time.Time // when something came last
}

// now returns what the clock showed when something came last; zero if that is unknown.
func (c *serverClock) now() time.Time {
	if c.date.IsZero() {
		return c.date
	}
	return c.date.Add(c.read.Sub(c.at))
}

// timedBody notes when a connection is waited for and when something came: once for each read, not for each line.
type timedBody struct {
	io.ReadCloser
	stream *logStream
}

// Read implements io.Reader.
func (b timedBody) Read(p []byte) (int, error) {
	b.stream.waiting.Store(time.Now().UnixNano())
	n, err := b.ReadCloser.Read(p)
	b.stream.clock.read = time.Now()
	b.stream.waiting.Store(0)
	return n, err
}

// opening is what came of an attempt to connect.
type opening struct {
	response *http.Response
	err      error
	at       time.Time
}

// lineState is how far a line is given.
type lineState struct {
	open  bool // its end is yet to come
	hash  uint64
	stamp time.Time
	seen  int // bytes of its text that came
	given int // bytes of its text that were given
	drop  bool
}

// next gives the next piece, or io.EOF after the last.
func (s *logStream) next() (piece, error) {
	for {
		if s.complete || (s.limited && s.left <= 0) {
			return piece{}, io.EOF
		}
		if s.body == nil {
			s.waiting.Store(time.Now().UnixNano())
			if err := s.connect(); err != nil {
				return piece{}, err
			}
			continue
		}
		raw, err := s.lines.ReadSlice('\n')
		if err == nil || errors.Is(err, bufio.ErrBufferFull) {
			if taken, fresh := s.take(raw); fresh {
				return taken, nil
			}
			continue
		}
		rest := bytes.Clone(raw)
		s.hangUp()
		s.waiting.Store(time.Now().UnixNano())
		if err := s.atEnd(err); err != nil {
			return piece{}, err
		}
		if s.complete && len(rest) > 0 {
			if taken, fresh := s.take(rest); fresh {
				return taken, nil
			}
		}
	}
}

// take is what is new in a piece of the log as it came.
func (s *logStream) take(raw []byte) (taken piece, fresh bool) {
	text := raw
	if !s.line.open {
		var stamp time.Time
		stamp, taken.head, text = splitStamp(raw)
		s.line = lineState{stamp: stamp, hash: s.recent.hash(raw)}
		s.line.drop = s.isOld(stamp, s.line.hash)
		s.count++
		if s.cut.open && s.cut.hash == s.line.hash {
			s.line.given, s.cut = s.cut.given, lineState{}
		}
	}
	s.line.open = raw[len(raw)-1] != '\n'
	behind := max(0, min(s.line.given-s.line.seen, len(text)))
	s.line.seen += len(text)
	defer func() {
		if !s.line.open && !s.line.drop {
			s.recent.add(s.line.stamp, s.clock.now(), s.line.hash)
		}
	}()
	if s.line.drop || behind == len(text) && behind > 0 {
		return piece{}, false
	}
	if behind > 0 {
		text, taken.head = text[behind:], nil
	}
	s.line.given = s.line.seen
	s.progress()
	taken.stamp, taken.text = s.line.stamp, s.limit(&taken, text)
	return taken, true
}

// progress notes that a line was given. One without a time is no progress: nodes repeat their errors as often as they
// are asked.
func (s *logStream) progress() {
	if s.line.stamp.IsZero() {
		s.notice = s.line.hash
		return
	}
	s.notice, s.retries = 0, 0
	if s.oldest.IsZero() {
		s.oldest = s.line.stamp
		if now := s.clock.now(); !now.IsZero() && s.oldest.After(now) {
			s.oldest = now
		}
	}
}

// limit cuts off what the caller does not want any more.
func (s *logStream) limit(taken *piece, text []byte) []byte {
	if !s.limited {
		return text
	}
	if s.opts.Timestamps {
		s.left -= int64(len(taken.head))
	}
	text = text[:min(int64(len(text)), max(0, s.left))]
	s.left -= int64(len(text))
	return text
}

// isOld reports whether a line was given before, or is older than what was asked for or than the first that was given.
func (s *logStream) isOld(stamp time.Time, hash uint64) bool {
	switch {
	case s.again == nil:
		return false
	case stamp.IsZero():
		return s.count == 0 && hash == s.notice
	case s.again[hash] > 0:
		s.again[hash]--
		return true
	default:
		return stamp.Before(s.oldest) || stamp.Before(s.asked)
	}
}

// splitStamp takes a line's time off its beginning. Where there is none it is the zero time.
func splitStamp(line []byte) (stamp time.Time, head, text []byte) {
	space := bytes.IndexByte(line[:min(len(line), len(time.RFC3339Nano)+1)], ' ')
	if space < 0 {
		return time.Time{}, nil, line
	}
	stamp, err := time.Parse(time.RFC3339Nano, string(line[:space]))
	if err != nil {
		return time.Time{}, nil, line
	}
	return stamp, line[:space+1], line[space+1:]
}

// request is the next connection's.
func (s *logStream) request() *transport.Request {
	opts := s.opts
	opts.Timestamps = true
	opts.LimitBytes = 0 // the server would count the times as well, and from the beginning again
	s.asked = time.Time{}
	switch {
	case !s.recent.last.IsZero():
		s.asked = s.recent.since()
		opts.SinceTime, opts.SinceSeconds, opts.TailLines = s.asked, 0, nil
	case s.begun.IsZero():
	case opts.TailLines != nil:
		opts.SinceTime, opts.SinceSeconds, opts.TailLines = s.begun, 0, nil
	case opts.SinceSeconds > 0:
		opts.SinceTime, opts.SinceSeconds = s.begun.Add(-time.Duration(opts.SinceSeconds)*time.Second), 0
	}
	return &transport.Request{Path: s.pod + "/log", Query: opts.query(s.opts.Container)}
}

// begin begins to read a connection.
func (s *logStream) begin(response *http.Response, at time.Time) {
	s.connects++
	s.opened, s.clock.at, s.clock.read = at, at, at
	s.clock.date, _ = http.ParseTime(response.Header.Get("Date"))
	if s.connects == 1 {
		s.begun = s.clock.date
	}
	if s.connects > 1 || !s.recent.last.IsZero() {
		s.again = s.recent.again()
	}
	if s.lines == nil {
		s.lines = bufio.NewReaderSize(nil, pieceSize)
	}
	s.count = 0
	s.body = response.Body
	s.lines.Reset(timedBody{response.Body, s})
}

// continueAfter makes s give what is new after before, which has read the container's last run to its end. Which run a
// connection's lines are of is not certain: the node knows of a restart before the API server does.
func (s *logStream) continueAfter(before *logStream) {
	s.recent, s.oldest = before.recent, before.oldest
	before.recent = recentLines{}
}

// hangUp leaves a connection.
func (s *logStream) hangUp() {
	if s.body == nil {
		return
	}
	_ = s.body.Close()
	s.body = nil
	if s.line.open && !s.line.drop && s.line.given > 0 {
		s.cut = s.line
	}
	s.line = lineState{}
}
