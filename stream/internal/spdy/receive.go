package spdy

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// heardReader notes when the node sends something.
type heardReader struct{ session *Session }

func (r heardReader) Read(p []byte) (int, error) {
	n, err := r.session.conn.Read(p)
	if n > 0 {
		r.session.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// read handles frames until the session ends.
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
		if err := s.refuse(f.stream); err != nil {
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

// pair returns that of a stream, nil if it is closed on both sides, and whether the stream was ever opened.
func (s *Session) pair(stream uint32) (pair *Pair, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.lastID
	if stream%2 == 0 {
		last = s.peerID
	}
	return s.pairs[stream], stream <= last
}

// receiveData hands on a data frame as its bytes come.
func (s *Session) receiveData(f frame) error {
	pair, known := s.pair(f.stream)
	if !known {
		return fmt.Errorf("SPDY: the node sent data on stream %d, which nobody opened", f.stream)
	}
	for left := f.length; left > 0; {
		if pair != nil && f.stream == pair.dataID {
			s.waitRoom(pair.to)
		}
		n, err := s.frames.in.Read(s.scratch[:min(left, len(s.scratch))])
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
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
		pair.acceptLocked(pair.dataID, pair.errorID) // it answers without having accepted
		s.retiredByErrorLocked(pair, f)
	}
	return nil
}

// retiredByErrorLocked retires the session after an error: a node that failed at one connection may have lost the pod for
// good, and does not know of another that took its place.
func (s *Session) retiredByErrorLocked(pair *Pair, f frame) {
	if f.stream == pair.errorID && f.length > 0 && !s.retired {
		s.retireLocked()
	}
}

// waitRoom waits until a receiver can take more. The node is not to blame for its silence meanwhile.
func (s *Session) waitRoom(to Receiver) {
	if to.Behind() {
		s.heard.Store(0)
		to.WaitRoom(s.done)
		s.heard.Store(time.Now().UnixNano())
	}
}

// discard counts bytes for pairs that are closed here. A node stops sending when the program in the pod does, not when it
// is told to.
func (s *Session) discard(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwanted += n
	if s.unwanted > maxUnwanted && !s.retired {
		s.retireLocked()
	}
}

// receiveReply handles that the node has accepted a stream.
func (s *Session) receiveReply(stream uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pair := s.pairs[stream]; pair != nil {
		pair.acceptLocked(stream)
	}
}

// receiveFin handles the end of one stream.
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

// receiveReset handles that the node has given up one stream.
func (s *Session) receiveReset(stream, status uint32) {
	pair, _ := s.pair(stream)
	if pair == nil {
		return
	}
	s.mu.Lock()
	pair.refuseLocked(fmt.Errorf("the node refused the connection (SPDY status %d): %w", status, syscall.ECONNRESET))
	s.mu.Unlock()
	if stream == pair.dataID {
		pair.to.Reset(status)
		return
	}
	s.endedByNode(pair)
	pair.to.EndErrors()
}

// endedByNode is called when the node is through with a pair: its error stream is the last to end.
func (s *Session) endedByNode(pair *Pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pair.ended {
		return
	}
	pair.ended = true
	if pair.closed {
		s.halfClosed--
		s.forgetLocked(pair)
	}
	s.settleLocked()
}

// refuse has a stream refused that the node opened.
func (s *Session) refuse(stream uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case stream%2 != 0:
		return fmt.Errorf("SPDY: the node opened stream %d, whose number is not one of its own", stream)
	case len(s.refusals) >= maxRefusals:
		return errors.New("SPDY: the node opens streams and reads no answers")
	}
	s.peerID = max(s.peerID, stream)
	s.refusals = append(s.refusals, stream)
	signal(s.wake)
	return nil
}

// receivePing has a ping of the node answered, or notes its answer to one of ours: those have odd numbers.
func (s *Session) receivePing(number uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number%2 == 1 {
		s.answers = true
		return
	}
	s.pong, s.pongDue = number, true
	signal(s.wake)
}

var errGoAway = errors.New("the node goes away and has not processed the connection")

// receiveGoAway retires the session and gives up the streams above last, which the node will not process.
func (s *Session) receiveGoAway(last uint32) {
	s.mu.Lock()
	dropped := s.pairsLocked(last)
	for _, pair := range dropped {
		pair.refuseLocked(ErrRetired)
		if !pair.ended {
			pair.ended = true
			if pair.closed {
				s.halfClosed--
				s.forgetLocked(pair)
			}
		}
	}
	s.retireLocked()
	s.mu.Unlock()
	err := s.options.Broken(errGoAway)
	for _, pair := range dropped {
		pair.to.Break(err)
	}
}
