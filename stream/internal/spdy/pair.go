package spdy

import (
	"net"
	"os"
	"slices"
)

// Pair is one connection: a data stream and an error stream. It is safe for concurrent use.
type Pair struct {
	session  *Session
	port     uint16
	to       Receiver
	accepted chan struct{} // closed when the node has accepted both streams
	refused  chan struct{} // closed when it will not, and err is set

	dataID, errorID uint32

	// Guarded by the session's mu.
	err             error
	opened          bool    // the frames that open it are written, or about to be
	replied         [2]bool // the node has accepted the error stream, the data stream
	queued          int     // messages of data that are not written
	ending          bool    // is in the outbox's list
	finDue, finSent bool
	resetDue        bool
	closed          bool // by this side
	ended           bool // by the node
}

// Send queues up to [MaxData] bytes of p, which it copies, and returns how many. It waits for room in the queue until the
// session ends, gone is closed (net.ErrClosed) or late is (os.ErrDeadlineExceeded).
func (p *Pair) Send(b []byte, gone, late <-chan struct{}) (int, error) {
	s := p.session
	select {
	case s.slots <- struct{}{}:
	case <-s.done:
		return 0, s.err
	case <-gone:
		return 0, net.ErrClosed
	case <-late:
		return 0, os.ErrDeadlineExceeded
	}
	b = b[:min(len(b), MaxData)]
	message := buffers.Get().(*[]byte)
	*message = appendData((*message)[:0], p.dataID, 0, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.closed || p.finDue || s.err != nil {
		<-s.slots
		buffers.Put(message)
		return 0, net.ErrClosed
	}
	p.queued++
	s.data = append(s.data, dataMessage{p, message})
	signal(s.wake)
	return len(b), nil
}

// CloseWrite tells the node, after what was sent, that nothing more follows.
func (p *Pair) CloseWrite() error {
	s := p.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	p.finDue = true
	s.endLocked(p)
	return nil
}

// Close closes the pair both ways. What was sent before is still written.
func (p *Pair) Close() {
	if p.session.release(p) {
		p.session.options.OnChange()
	}
}

// release reports whether the pair was open.
func (s *Session) release(p *Pair) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.closed {
		return false
	}
	p.closed = true
	s.live--
	switch {
	case s.err != nil:
	case !p.opened:
		s.openings = slices.DeleteFunc(s.openings, func(other *Pair) bool { return other == p })
		s.forgetLocked(p)
	default:
		// A node frees the streams of a connection that it has ended when both sides are through.
		if !p.ended || !p.finDue {
			p.resetDue = true
			s.endLocked(p)
		}
		if p.ended {
			s.forgetLocked(p)
			break
		}
		s.halfClosed++
		if s.halfClosed > maxHalfClosed {
			s.retireLocked()
		}
	}
	s.settleLocked()
	return true
}

func (s *Session) forgetLocked(p *Pair) {
	delete(s.pairs, p.dataID)
	delete(s.pairs, p.errorID)
}

// refuseLocked ends the wait for the node to accept the pair.
func (p *Pair) refuseLocked(err error) {
	if p.err == nil && p.replied != [2]bool{true, true} {
		p.err = err
		close(p.refused)
	}
}

// acceptLocked is called when the node has accepted one of the streams, or both.
func (p *Pair) acceptLocked(streams ...uint32) {
	if p.err != nil || p.replied == [2]bool{true, true} {
		return
	}
	for _, stream := range streams {
		if stream == p.errorID {
			p.replied[0] = true
		} else {
			p.replied[1] = true
		}
	}
	if p.replied == [2]bool{true, true} {
		close(p.accepted)
		p.session.carried = true
	}
}
