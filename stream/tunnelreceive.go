package stream

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// receive reads frames until the tunnel ends.
func (t *tunnel) receive() {
	for {
		frame, err := readSPDYFrame(t.in)
		if err == nil {
			t.heard.Store(time.Now().UnixNano())
			err = t.handle(frame)
		}
		if err != nil {
			t.end(err)
			return
		}
	}
}

// handle does what a frame asks for and reads what is left of it.
func (t *tunnel) handle(frame spdyFrame) error {
	fin := frame.flags&spdyFlagFin != 0
	switch frame.kind {
	case spdyData:
		if err := t.data(frame); err != nil {
			return err
		}
		if fin {
			t.finished(frame.stream)
		}
		return nil
	case spdySynReply:
		t.replied(frame.stream)
		if fin {
			t.finished(frame.stream)
		}
	case spdyRstStream:
		t.reset(frame.stream, frame.code)
	case spdySynStream: // nodes have no need to open streams
		t.theirs = max(t.theirs, frame.stream)
		t.putSoon(message(appendSPDYControl(nil, spdyRstStream, frame.stream, spdyRefused)))
	case spdyPing:
		if frame.stream%2 == 1 {
			t.pong(frame.stream) // one of ours
		} else {
			t.putSoon(message(appendSPDYControl(nil, spdyPing, frame.stream)))
		}
	case spdyGoAway:
		t.mu.Lock()
		t.full = true
		t.mu.Unlock()
		t.settle()
	}
	_, err := io.CopyN(io.Discard, t.in, int64(frame.length))
	return err
}

// data reads a data frame as its bytes come.
func (t *tunnel) data(frame spdyFrame) error {
	t.mu.Lock()
	stream, last := t.streams[frame.stream], t.last
	t.mu.Unlock()
	if frame.stream%2 == 0 {
		last = t.theirs
	}
	if frame.stream > last {
		return errors.New("the SPDY peer sent data on a stream that nobody opened")
	}
	for left := frame.length; left > 0; {
		if stream != nil && frame.stream == stream.data {
			t.makeRoom(stream.conn)
		}
		n, err := t.in.Read(t.scratch[:min(left, len(t.scratch))])
		if err != nil {
			return err
		}
		left -= n
		t.heard.Store(time.Now().UnixNano())
		switch {
		case stream == nil:
			t.refuse(n)
		case frame.stream == stream.errors:
			stream.conn.told(t.scratch[:n])
		case !stream.conn.received(t.scratch[:n]):
			t.refuse(n)
		}
	}
	return nil
}

// makeRoom waits until a connection can take more. A node is not to blame for what it says meanwhile.
func (t *tunnel) makeRoom(conn *portConn) {
	if conn.behind() {
		t.heard.Store(0)
		conn.admits(t.done)
		t.heard.Store(time.Now().UnixNano())
	}
}

// refuse counts what came for connections that are closed. Nodes do not stop sending when they are told to, but when
// the program in the pod does.
func (t *tunnel) refuse(bytes int) {
	t.mu.Lock()
	t.unwanted += bytes
	before := t.full
	t.full = t.full || t.unwanted > maxUnwanted
	changed := before != t.full
	t.mu.Unlock()
	if changed {
		t.settle()
	}
}

// finished is called when the node has sent a stream's last byte.
func (t *tunnel) finished(number uint32) {
	t.mu.Lock()
	stream := t.streams[number]
	t.mu.Unlock()
	switch {
	case stream == nil:
	case number == stream.data:
		stream.conn.finished()
	default:
		t.overAt(stream)
		stream.conn.judge()
	}
}

// reset is called when the node has given up a stream.
func (t *tunnel) reset(number, code uint32) {
	t.mu.Lock()
	stream := t.streams[number]
	t.mu.Unlock()
	switch {
	case stream == nil:
	case number == stream.data:
		stream.conn.fail(fmt.Errorf("the node reset the connection (SPDY status %d): %w", code, syscall.ECONNRESET))
	default:
		t.overAt(stream)
		stream.conn.judge()
	}
}

// overAt is called when the node has dealt with a connection.
func (t *tunnel) overAt(stream *tunneled) {
	t.mu.Lock()
	stream.over = true
	// A node that refused one connection may have lost the pod, and knows of no other: the next goes another way.
	t.full = t.full || stream.conn.refused()
	if stream.gone {
		t.forget(stream)
	}
	full := t.full
	t.mu.Unlock()
	if !full {
		t.putSoon(t.ping(spdyWorkers)) // is any stuck with what the connection left?
	}
	t.settle()
}

// forget is called, with the lock, when a connection is closed on both sides.
func (t *tunnel) forget(stream *tunneled) {
	if t.streams[stream.data] == stream {
		delete(t.streams, stream.data)
		delete(t.streams, stream.errors)
		t.left--
	}
}

// replied is called when the node has taken a stream.
func (t *tunnel) replied(number uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stream := t.streams[number]
	if stream == nil {
		return
	}
	if stream.replies++; stream.replies == 2 {
		close(stream.opened)
	}
}

// send implements carrier.
func (s *tunneled) send(p []byte, gone, late <-chan struct{}) error {
	return s.tunnel.put(gone, late, func(b []byte) []byte { return appendSPDYData(b, s.data, 0, p) })
}

// finish implements carrier.
func (s *tunneled) finish(gone <-chan struct{}) error {
	err := s.tunnel.put(gone, nil, func(b []byte) []byte { return appendSPDYData(b, s.data, spdyFlagFin, nil) })
	if err == nil {
		s.tunnel.mu.Lock()
		s.finished = true
		s.tunnel.mu.Unlock()
	}
	return err
}

// taken implements carrier.
func (s *tunneled) taken(bytes int) { s.tunnel.backlog.grown(-bytes) }

// leave implements carrier.
func (s *tunneled) leave(unread int) {
	t := s.tunnel
	t.backlog.grown(-unread)
	t.backlog.joined(-1)
	t.mu.Lock()
	s.gone = true
	t.live--
	t.left++
	// The node gives up the streams of what it has dealt with once both sides have said that they are through.
	reset := (!s.over || !s.finished) && t.err == nil
	if s.over || t.err != nil {
		t.forget(s)
	}
	t.full = t.full || t.left > maxLeft
	t.mu.Unlock()
	if reset {
		t.putSoon(message(appendSPDYControl(nil, spdyRstStream, s.data, spdyCancel)))
	}
	t.settle()
	t.changed()
}
