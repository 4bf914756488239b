package spdy

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// maxQueued is how many messages of data may wait to be written: enough to keep the connection busy.
	maxQueued = 4
	// maxRefusals is how many streams of the node may wait to be refused.
	maxRefusals = 64
	// fullControl is the size at which a message of control frames takes no more. The frames that open a pair, the
	// longest, have less than 300 bytes.
	fullControl = MaxData - 512
	// pingInterval is how often the node is asked for a sign of life.
	pingInterval = 5 * time.Second
	// silenceTimeout is how long a node that answers pings may send nothing. It is checked with each ping.
	silenceTimeout = 55 * time.Second
)

// errSilent ends a session whose API server is there and whose node is not. It is no time-out in the sense of net.Error:
// a caller would take it for that of a deadline of its own.
var errSilent = fmt.Errorf("the node has answered nothing for %v, not even a ping", silenceTimeout)

// buffers are for one message each.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, headerSize+MaxData); return &b }}

// outbox is what waits to be written. The session's mu guards it.
type outbox struct {
	data     []dataMessage // at most maxQueued
	openings []*Pair       // each with a caller of Open that waits
	endings  []*Pair       // those with a FIN or a reset due, each once
	refusals []uint32      // streams of the node's, at most maxRefusals
	pong     uint32        // the last ping of the node's
	pongDue  bool
	ping     uint32 // the last ping of this side's
	pingDue  bool
}

type dataMessage struct {
	from  *Pair
	bytes *[]byte
}

// endLocked lists a pair whose FIN or reset is due.
func (s *Session) endLocked(p *Pair) {
	if !p.ending {
		p.ending = true
		s.endings = append(s.endings, p)
	}
	signal(s.wake)
}

// write writes messages until the session ends or hangs up.
func (s *Session) write() {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	control := make([]byte, 0, 1<<10)
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
			s.tick()
		default:
		}
		idle, err := s.writeNext(&control)
		if err != nil {
			// The peer may have said why before it closed the connection: the reader finds out by itself.
			time.AfterFunc(closeTimeout, func() { s.Close(err) })
			return
		}
		if !idle {
			continue
		}
		if s.isHangingUp() {
			_ = s.conn.WriteClose() // where it fails, the connection ends without it
			return
		}
		select {
		case <-s.wake:
		case <-ticker.C:
			s.tick()
		case <-s.done:
			return
		}
	}
}

// writeNext writes a message of control frames and one of data; idle means that there was neither.
func (s *Session) writeNext(control *[]byte) (idle bool, err error) {
	*control = s.takeControl((*control)[:0])
	if len(*control) > 0 {
		if err := s.conn.WriteMessage(*control); err != nil {
			return false, err
		}
	}
	data := s.takeData()
	if data == nil {
		return len(*control) == 0, nil
	}
	err = s.conn.WriteMessage(*data)
	buffers.Put(data)
	return false, err
}

func (s *Session) isHangingUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hangingUp && len(s.data) == 0 && len(s.endings) == 0
}

// tick has a ping sent, or ends a session whose node is silent.
func (s *Session) tick() {
	heard := s.heard.Load()
	s.mu.Lock()
	silent := s.answers && heard != 0 && time.Since(time.Unix(0, heard)) > silenceTimeout
	s.pingDue = true
	s.mu.Unlock()
	if silent {
		s.Close(errSilent)
	}
}

func (s *Session) takeData() *[]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.data) == 0 {
		return nil
	}
	next := s.data[0]
	s.data = slices.Delete(s.data, 0, 1)
	next.from.queued--
	<-s.slots
	return next.bytes
}

// takeControl appends the control frames that are due, as many as fit into about one message.
func (s *Session) takeControl(to []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pongDue {
		s.pongDue = false
		to = appendControl(to, typePing, s.pong)
	}
	if s.pingDue {
		s.pingDue = false
		s.ping += 2
		to = appendControl(to, typePing, s.ping-1)
	}
	for _, stream := range s.refusals {
		to = appendControl(to, typeRstStream, stream, statusRefuse)
	}
	s.refusals = s.refusals[:0]
	for len(s.openings) > 0 && len(to) < fullControl {
		next := s.openings[0]
		s.openings = slices.Delete(s.openings, 0, 1)
		to = s.appendOpening(to, next)
	}
	s.endings = slices.DeleteFunc(s.endings, func(p *Pair) bool {
		if p.queued > 0 || len(to) >= fullControl {
			return false
		}
		to = appendEnding(to, p)
		return true
	})
	return to
}

// appendOpening appends what opens a pair's streams.
func (s *Session) appendOpening(to []byte, p *Pair) []byte {
	first := !s.begun
	s.begun, p.opened = true, true
	port, request := strconv.Itoa(int(p.port)), strconv.Itoa(int(p.dataID))
	to = appendSynStream(to, p.errorID, first,
		header{"streamtype", "error"}, header{"port", port}, header{"requestid", request})
	to = appendData(to, p.errorID, flagFin, nil) // this side has no errors to report
	return appendSynStream(to, p.dataID, false,
		header{"streamtype", "data"}, header{"port", port}, header{"requestid", request})
}

// appendEnding appends the FIN or the reset of a pair whose data is written.
func appendEnding(to []byte, p *Pair) []byte {
	p.ending = false
	if p.finDue && !p.finSent {
		p.finSent = true
		to = appendData(to, p.dataID, flagFin, nil)
	}
	if p.resetDue {
		p.resetDue = false
		to = appendControl(to, typeRstStream, p.dataID, statusCancel)
	}
	return to
}
