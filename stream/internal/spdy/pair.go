package spdy

import (
	"net"
	"os"
	"slices"
)

// Pair is a connection: a data stream and an error stream. It is safe for concurrent use.
type Pair struct {
	session *Session
	port    uint16
	to      Receiver
	done    chan struct{} // closed when the node has accepted both streams, or failed with err

	dataID, errorID uint32

	// Guarded by the session's mu.
	err             error
	isDone          bool
	opened          bool    // the opening frames are written, or about to be
	replied         [2]bool // the node has accepted the error stream, the data stream
	queued          int     // queued messages of data
	ending          bool    // is in outbox.endings
	finDue, finSent bool
	resetDue        bool
	closed          bool // by this side
	ended           bool // by the node
}

// Send queues a copy of up to [MaxData] bytes of b and returns their number. It waits for room in the queue until the session
// ends, done is closed (net.ErrClosed) or expired is closed (os.ErrDeadlineExceeded).
func (p *Pair) Send(b []byte, done, expired <-chan struct{}) (int, error) {
	s := p.session
	select {
	case s.slots <- struct{}{}:
	case <-s.done:
		return 0, s.err
	case <-done:
		return 0, net.ErrClosed
	case <-expired:
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

// CloseWrite ends the data to the node after all sent bytes.
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

// Close ends both directions. Bytes already sent are still written.
func (p *Pair) Close() {
	if p.session.release(p) {
		p.session.options.OnChange()
	}
}

// release closes a pair and reports whether it was open.
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
		// A node frees the streams of a connection after both sides have ended it.
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
	s.closeIfUnusedLocked()
	return true
}

func (s *Session) forgetLocked(p *Pair) {
	delete(s.pairs, p.dataID)
	delete(s.pairs, p.errorID)
}

// finishLocked ends Open, once: with an error, unless the node has accepted the pair.
func (p *Pair) finishLocked(err error) {
	if !p.isDone {
		p.isDone = true
		p.err = err
		close(p.done)
	}
}

// acceptLocked is called when the node has accepted a stream, or both streams.
func (p *Pair) acceptLocked(streams ...uint32) {
	p.replied[0] = p.replied[0] || slices.Contains(streams, p.errorID)
	p.replied[1] = p.replied[1] || slices.Contains(streams, p.dataID)
	if p.replied == [2]bool{true, true} && !p.isDone {
		p.session.hasAccepted = true
		p.finishLocked(nil)
	}
}
