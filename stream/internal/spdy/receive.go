package spdy

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// timedReader records when bytes arrive.
type timedReader struct{ session *Session }

func (r timedReader) Read(p []byte) (int, error) {
	n, err := r.session.conn.Read(p)
	if n > 0 {
		r.session.lastRead.Store(time.Now().UnixNano())
	}
	return n, err
}

func (s *Session) read() {
	for {
		f, err := s.frames.next()
		if err == nil {
			err = s.handle(f)
		}
		if err != nil {
			s.Close(err)
			return
		}
	}
}

// handle handles a frame and reads the rest of it.
func (s *Session) handle(f frame) error {
	switch f.kind {
	case typeData:
		if err := s.receiveData(f); err != nil {
			return err
		}
		if f.flags&flagFin != 0 {
			s.receiveFin(f.stream)
		}
		return nil
	case typeSynReply:
		s.receiveReply(f.stream)
		if f.flags&flagFin != 0 {
			s.receiveFin(f.stream)
		}
	case typeRstStream:
		s.receiveReset(f.stream, f.status)
	case typeSynStream:
		if err := s.rejectStream(f.stream); err != nil {
			return err
		}
	case typePing:
		s.receivePing(f.stream)
	case typeGoAway:
		s.receiveGoAway(f.stream)
	}
	_, err := io.CopyN(io.Discard, s.frames.in, int64(f.length))
	return err
}

// pair returns the pair of a stream, or nil if it is closed on both sides. known reports whether the stream was ever opened.
func (s *Session) pair(stream uint32) (pair *Pair, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.lastID
	if stream%2 == 0 {
		last = s.peerID
	}
	return s.pairs[stream], stream <= last
}

// receiveData passes on a data frame as its bytes arrive.
func (s *Session) receiveData(f frame) error {
	pair, known := s.pair(f.stream)
	if !known {
		return fmt.Errorf("SPDY: the node sent data on stream %d, but the stream is not open", f.stream)
	}
	for left := f.length; left > 0; {
		if pair != nil && f.stream == pair.dataID {
			s.waitRoom(pair.to)
		}
		n, err := s.frames.in.Read(s.scratch[:min(left, len(s.scratch))])
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		left -= n
		switch {
		case pair == nil:
			s.discard(n)
		case f.stream == pair.errorID:
			pair.to.ReceiveError(s.scratch[:n])
		case !pair.to.Receive(s.scratch[:n]):
			s.discard(n)
		}
	}
	if pair != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		pair.acceptLocked(pair.dataID, pair.errorID) // nodes may send data before the replies
		if f.stream == pair.errorID && f.length > 0 && !s.retired {
			// The node may have lost the pod for good, without knowing its replacement.
			s.retireLocked()
		}
	}
	return nil
}

// waitRoom waits until a receiver has room. The node's idle time does not count meanwhile.
func (s *Session) waitRoom(to Receiver) {
	if to.Behind() {
		s.lastRead.Store(0)
		to.WaitRoom(s.done)
		s.lastRead.Store(time.Now().UnixNano())
	}
}

// discard counts bytes for pairs closed by this side. A node only stops sending when the program in the pod stops, not after a
// reset.
func (s *Session) discard(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discarded += n
	if s.discarded > maxDiscarded && !s.retired {
		s.retireLocked()
	}
}

// receiveReply handles SYN_REPLY: the node has accepted a stream.
func (s *Session) receiveReply(stream uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pair := s.pairs[stream]; pair != nil {
		pair.acceptLocked(stream)
	}
}

func (s *Session) receiveFin(stream uint32) {
	pair, _ := s.pair(stream)
	switch {
	case pair == nil:
	case stream == pair.dataID:
		pair.to.EndData()
	default:
		s.endedByNode(pair)
		pair.to.EndErrors()
	}
}

// receiveReset handles RST_STREAM: the node has aborted a stream.
func (s *Session) receiveReset(stream, status uint32) {
	pair, _ := s.pair(stream)
	if pair == nil {
		return
	}
	s.mu.Lock()
	pair.finishLocked(fmt.Errorf("the node refused the connection (SPDY status %d): %w", status, syscall.ECONNRESET))
	s.mu.Unlock()
	if stream == pair.dataID {
		pair.to.Reset(status)
		return
	}
	s.endedByNode(pair)
	pair.to.EndErrors()
}

// endedByNode is called at the end of a pair's error stream, its last stream to end.
func (s *Session) endedByNode(pair *Pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endedByNodeLocked(pair)
	s.closeIfUnusedLocked()
}

func (s *Session) endedByNodeLocked(pair *Pair) {
	if pair.closed && !pair.ended {
		s.halfClosed--
		s.forgetLocked(pair)
	}
	pair.ended = true
}

// rejectStream queues the rejection of a stream opened by the node.
func (s *Session) rejectStream(stream uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case stream%2 != 0:
		return fmt.Errorf("SPDY: the node opened stream %d, whose number is not one of its own", stream)
	case len(s.rejections) >= maxRejections:
		return errors.New("SPDY: the node opens streams and reads no responses")
	}
	s.peerID = max(s.peerID, stream)
	s.rejections = append(s.rejections, stream)
	signal(s.wake)
	return nil
}

// receivePing handles a ping of the node, or the reply to a ping of this side (odd numbers).
func (s *Session) receivePing(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number%2 == 1 {
		s.respondsToPings = true
		return
	}
	s.pong = number
	s.pongDue = true
	signal(s.wake)
}

var errGoAway = errors.New("the node goes away and has not processed the connection")

// receiveGoAway retires the session and abandons all streams above last: the node will not process them.
func (s *Session) receiveGoAway(last uint32) {
	s.mu.Lock()
	dropped := s.pairsLocked(last)
	for _, pair := range dropped {
		pair.finishLocked(ErrRetired)
		s.endedByNodeLocked(pair)
	}
	s.retireLocked()
	s.mu.Unlock()
	err := s.options.BreakError(errGoAway)
	for _, pair := range dropped {
		pair.to.Break(err)
	}
}
