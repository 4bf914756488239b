package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

// maxPiece limits a piece of a line, in bytes.
const maxPiece = 64 << 10

// logPiece is a line of a log, or a part of a long line.
type logPiece struct {
	stamp time.Time
	// text is valid until the next piece. It begins with the time if opts.Timestamps requests it, and has a line break at the end
	// of a line.
	text []byte
}

// containerLog reads the log of a container's run, line by line, over as many connections as necessary. A new connection requests
// lines since shortly before the last returned line and skips lines already returned (recentLines). It is not safe for concurrent
// use.
type containerLog struct {
	ctx     context.Context
	conn    *transport.Conn
	podPath string
	opts    LogOptions
	run     containerRun
	recent  recentLines

	body      io.ReadCloser // nil without a connection
	lines     *bufio.Reader
	clock     serverClock
	connects  int
	firstDate time.Time      // the server's time at the first connection
	since     time.Time      // start time of the connection's requested lines
	oldest    time.Time      // time of the first returned line
	repeated  map[uint64]int // lines repeated by the connection; nil for the first connection
	retries   int            // since the last new line with a time
	denials   retry.Denials
	hadLogs   bool  // earlier logs were read: 401 and 403 may be transient
	breakErr  error // error of the last broken connection; nil after a regular end
	isFinal   bool  // the container has ended: the connection sends the rest of the log
	complete  bool
	isGone    bool // the pod is deleted
	// waitingSince is the start of the current wait for the server, in nanoseconds of the Unix epoch; 0 outside of a wait. It is
	// read concurrently. The runs of a container are read in sequence and share it.
	waitingSince *atomic.Int64

	line      lineState
	cutLine   lineState // the unfinished line of the last connection
	notice    uint64    // hash of the last line if it had no time: a node repeats its errors
	lineCount int       // of the connection
	left      int64     // of opts.LimitBytes
}

// lineState is the progress within a line.
type lineState struct {
	isOpen   bool // its end has not arrived
	isOld    bool
	hash     uint64
	stamp    time.Time
	received int // bytes of its text
	returned int // bytes of its text
}

func newContainerLog(ctx context.Context, conn *transport.Conn, podPath string, opts *LogOptions) *containerLog {
	return &containerLog{
		ctx: ctx, conn: conn, podPath: podPath, opts: *opts, left: opts.LimitBytes, recent: recentLines{seed: maphash.MakeSeed()},
		waitingSince: new(atomic.Int64),
	}
}

// next returns the next piece, or io.EOF after the last piece.
func (l *containerLog) next() (logPiece, error) {
	for {
		if l.complete || (l.opts.LimitBytes > 0 && l.left <= 0) {
			return logPiece{}, io.EOF
		}
		if l.body == nil {
			l.waitingSince.Store(time.Now().UnixNano())
			if err := l.connect(); err != nil {
				return logPiece{}, err
			}
			continue
		}
		raw, err := l.lines.ReadSlice('\n')
		if err == nil || errors.Is(err, bufio.ErrBufferFull) {
			if piece, isNew := l.filter(raw); isNew {
				return piece, nil
			}
			continue
		}
		rest := bytes.Clone(raw)
		line := l.line
		l.disconnect()
		l.waitingSince.Store(time.Now().UnixNano())
		if err := l.disconnected(err); err != nil {
			return logPiece{}, err
		}
		if l.complete && len(rest) > 0 {
			l.line = line // rest may be the last piece of a long line
			if piece, isNew := l.filter(rest); isNew {
				return piece, nil
			}
		}
	}
}

// filter returns the new part of received text. The text is at most a line.
func (l *containerLog) filter(raw []byte) (piece logPiece, isNew bool) {
	text := raw
	if !l.line.isOpen {
		var stamp time.Time
		stamp, text = splitStamp(raw)
		l.line = lineState{stamp: stamp, hash: l.recent.hash(raw)}
		l.line.isOld = l.isOld(stamp, l.line.hash)
		l.lineCount++
		if l.cutLine.isOpen && l.cutLine.hash == l.line.hash {
			l.line.returned = l.cutLine.returned
			l.cutLine = lineState{}
		}
	}
	l.line.isOpen = raw[len(raw)-1] != '\n'
	repeated := max(0, min(l.line.returned-l.line.received, len(text)))
	l.line.received += len(text)
	defer func() {
		if !l.line.isOpen && !l.line.isOld {
			l.recent.add(l.line.stamp, l.clock.limit(l.line.stamp), l.line.hash)
		}
	}()
	if l.line.isOld || repeated == len(text) && repeated > 0 {
		return logPiece{}, false
	}
	if repeated > 0 {
		text = text[repeated:]
	} else if l.opts.Timestamps {
		text = raw
	}
	l.line.returned = l.line.received
	l.noteProgress()
	return logPiece{l.line.stamp, l.limit(text)}, true
}

// noteProgress resets the retries after a new line. A line without a time is no progress: nodes repeat their errors for each
// request.
func (l *containerLog) noteProgress() {
	if l.line.stamp.IsZero() {
		l.notice = l.line.hash
		return
	}
	l.notice = 0
	l.retries = 0
	if l.oldest.IsZero() {
		l.oldest = l.clock.limit(l.line.stamp)
	}
}

func (l *containerLog) limit(text []byte) []byte {
	if l.opts.LimitBytes <= 0 {
		return text
	}
	text = text[:min(int64(len(text)), l.left)]
	l.left -= int64(len(text))
	return text
}

// isOld reports whether a line was already returned, or is older than the requested time or the first returned line.
func (l *containerLog) isOld(stamp time.Time, hash uint64) bool {
	switch {
	case l.repeated == nil:
		return false
	case stamp.IsZero():
		return l.lineCount == 0 && hash == l.notice
	case l.repeated[hash] > 0:
		l.repeated[hash]--
		return true
	default:
		return stamp.Before(l.oldest) || stamp.Before(l.since)
	}
}

// splitStamp separates a line's time. The time is zero for a line without a time.
func splitStamp(line []byte) (stamp time.Time, text []byte) {
	space := bytes.IndexByte(line[:min(len(line), len(time.RFC3339Nano)+1)], ' ')
	if space < 0 {
		return time.Time{}, line
	}
	stamp, err := time.Parse(time.RFC3339Nano, string(line[:space]))
	if err != nil {
		return time.Time{}, line
	}
	return stamp, line[space+1:]
}

func (l *containerLog) request() *transport.Request {
	opts := l.opts
	opts.Timestamps = true
	opts.LimitBytes = 0 // the server would count the times as well, and restart at the beginning
	l.since = time.Time{}
	switch {
	case !l.recent.last.IsZero():
		l.since = l.recent.since()
		opts.SinceTime = l.since
		opts.SinceSeconds = 0
		opts.TailLines = nil
	case l.firstDate.IsZero():
	case opts.TailLines != nil:
		opts.SinceTime = l.firstDate
		opts.SinceSeconds = 0
		opts.TailLines = nil
	case opts.SinceSeconds > 0:
		opts.SinceTime = l.firstDate.Add(-time.Duration(opts.SinceSeconds) * time.Second)
		opts.SinceSeconds = 0
	}
	return &transport.Request{Path: l.podPath + "/log", Query: opts.query(l.opts.Container)}
}

func (l *containerLog) connected(response *http.Response) {
	l.connects++
	l.clock.at = time.Now()
	l.clock.read = l.clock.at
	l.clock.date, _ = http.ParseTime(response.Header.Get("Date"))
	if l.connects == 1 {
		l.firstDate = l.clock.date
	}
	if l.connects > 1 || !l.recent.last.IsZero() {
		l.repeated = l.recent.counts()
	}
	if l.lines == nil {
		l.lines = bufio.NewReaderSize(nil, maxPiece)
	}
	l.lineCount = 0
	l.body = response.Body
	l.lines.Reset(timedBody{response.Body, l})
}

// continueAfter makes l skip the lines of the container's previous run, after its log is read. The run of a connection's lines is
// uncertain: the node learns of a restart before the API server.
func (l *containerLog) continueAfter(previous *containerLog) {
	l.recent = previous.recent
	l.oldest = previous.oldest
	previous.recent = recentLines{}
	l.waitingSince.Store(0)
}

func (l *containerLog) disconnect() {
	if l.body == nil {
		return
	}
	_ = l.body.Close()
	l.body = nil
	if l.line.isOpen && !l.line.isOld && l.line.returned > 0 {
		l.cutLine = l.line
	}
	l.line = lineState{}
}

// serverClock estimates the API server's clock by the Date of its last response.
type serverClock struct {
	date time.Time // zero if unknown
	at   time.Time // when it arrived
	read time.Time // when the last data arrived
}

// limit returns min(stamp, server time at the last data). If the server's time is unknown it returns stamp.
func (c *serverClock) limit(stamp time.Time) time.Time {
	if now := c.date.Add(c.read.Sub(c.at)); !c.date.IsZero() && now.Before(stamp) {
		return now
	}
	return stamp
}

// timedBody records the times of waiting and of data: once for each read, not for each line.
type timedBody struct {
	io.ReadCloser
	log *containerLog
}

func (b timedBody) Read(p []byte) (int, error) {
	b.log.waitingSince.Store(time.Now().UnixNano())
	n, err := b.ReadCloser.Read(p)
	b.log.clock.read = time.Now()
	b.log.waitingSince.Store(0)
	return n, err
}
