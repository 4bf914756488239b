package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

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
	begun    time.Time      // the server's time at the first connection
	oldest   time.Time      // of the first line that was given
	again    map[uint64]int // what the connection sends again
	retries  int            // since the last new line
	broke    error          // how the last connection ended; nil where it ended well
	final    bool           // the container has ended: the connection sends all that is left
	complete bool

	line    lineState
	cut     lineState // the line in which the last connection ended
	limited bool
	left    int64
}

// opening is what came of an attempt to connect.
type opening struct {
	response *http.Response
	err      error
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
		s.line = lineState{stamp: stamp, hash: lineHash(raw)}
		s.line.drop = s.isOld(stamp, s.line.hash)
		if s.cut.open && s.cut.hash == s.line.hash {
			s.line.given, s.cut = s.cut.given, lineState{}
		}
	}
	s.line.open = raw[len(raw)-1] != '\n'
	behind := max(0, min(s.line.given-s.line.seen, len(text)))
	s.line.seen += len(text)
	defer func() {
		if !s.line.open && !s.line.drop {
			s.recent.add(s.line.stamp, s.line.hash)
		}
	}()
	if s.line.drop || behind == len(text) && behind > 0 {
		return piece{}, false
	}
	if behind > 0 {
		text, taken.head = text[behind:], nil
	}
	if s.oldest.IsZero() {
		s.oldest = s.line.stamp
	}
	s.line.given = s.line.seen
	s.retries = 0
	taken.stamp, taken.text = s.line.stamp, s.limit(&taken, text)
	return taken, true
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

// isOld says whether a line was given before, or is older than the first that was.
func (s *logStream) isOld(stamp time.Time, hash uint64) bool {
	if s.again == nil || stamp.IsZero() {
		return false
	}
	if s.again[hash] > 0 {
		s.again[hash]--
		return true
	}
	return stamp.Before(s.oldest)
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
	switch {
	case !s.recent.last.IsZero():
		opts.SinceTime, opts.SinceSeconds, opts.TailLines = s.recent.since(), 0, nil
	case s.begun.IsZero():
	case opts.TailLines != nil:
		opts.SinceTime, opts.SinceSeconds, opts.TailLines = s.begun, 0, nil
	case opts.SinceSeconds > 0:
		opts.SinceTime, opts.SinceSeconds = s.begun.Add(-time.Duration(opts.SinceSeconds)*time.Second), 0
	}
	return &transport.Request{Path: s.pod + "/log", Query: opts.query(s.opts.Container)}
}

// opened begins to read a connection.
func (s *logStream) opened(response *http.Response) {
	s.connects++
	if s.connects == 1 {
		s.begun, _ = http.ParseTime(response.Header.Get("Date"))
	} else {
		s.again = s.recent.again()
	}
	if s.lines == nil {
		s.lines = bufio.NewReaderSize(nil, pieceSize)
	}
	s.body = response.Body
	s.lines.Reset(response.Body)
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
