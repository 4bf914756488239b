package spdy

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	maxQueued     = 4  // queued messages of data: enough to keep the connection busy
	maxRejections = 64 // queued rejections of the node's streams
	// maxControl limits a message of control frames: frames are added only below it. The frames for opening a pair are the
	// longest, with less than 300 bytes.
	maxControl   = MaxData - 512
	pingInterval = 5 * time.Second
	idleTimeout  = 55 * time.Second // of a node that has responded to pings, checked with each ping
)

// errUnresponsive ends a session when the node does not respond although the API server does. It is no time-out in the sense of
// net.Error: callers would mistake it for their own deadline.
var errUnresponsive = fmt.Errorf("the node has sent nothing for %v, not even the response to a ping", idleTimeout)

// buffers each hold a message.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, headerSize+MaxData); return &b }}

// outbox holds pending messages and frames. The session's mu guards it.
type outbox struct {
	data       []dataMessage // at most maxQueued
	openings   []*Pair       // each with a waiting caller of Open
	endings    []*Pair       // pairs with a FIN or a reset due, each once
	rejections []uint32      // streams of the node, at most maxRejections
	pong       uint32        // the last ping of the node
	pongDue    bool
	ping       uint32 // the last ping of this side
	pingDue    bool
}

type dataMessage struct {
	pair  *Pair
	bytes *[]byte
}

// endLocked queues a pair's FIN or reset.
func (s *Session) endLocked(p *Pair) {
	if !p.ending {
		p.ending = true
		s.endings = append(s.endings, p)
	}
	signal(s.wake)
}

// write writes messages until the session ends or is closed gracefully.
func (s *Session) write() {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	control := make([]byte, 0, 1<<10)
	for {
		isIdle, err := s.writeNext(&control)
		if err != nil {
			// The peer may have sent a reason before it closed the connection: the reader returns the reason.
			time.AfterFunc(closeTimeout, func() { s.Close(err) })
			return
		}
		if !isIdle {
			signal(s.wake) // there may be more
		} else if s.mustClose() {
			_ = s.conn.WriteClose() // on failure, the connection ends without it
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

// writeNext writes a message of control frames and a message of data; isIdle means that there was neither.
func (s *Session) writeNext(control *[]byte) (isIdle bool, err error) {
	*control = s.appendDue((*control)[:0])
	if len(*control) > 0 {
		if err := s.conn.WriteMessage(*control); err != nil {
			return false, err
		}
	}
	data := s.nextData()
	if data == nil {
		return len(*control) == 0, nil
	}
	err = s.conn.WriteMessage(*data)
	buffers.Put(data)
	return false, err
}

func (s *Session) mustClose() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing && len(s.data) == 0 && len(s.endings) == 0
}

// tick queues a ping, or ends a session with an unresponsive node.
func (s *Session) tick() {
	lastRead := s.lastRead.Load()
	s.mu.Lock()
	timedOut := s.respondsToPings && lastRead != 0 && time.Since(time.Unix(0, lastRead)) > idleTimeout
	s.pingDue = true
	s.mu.Unlock()
	if timedOut {
		s.Close(errUnresponsive)
	}
}

func (s *Session) nextData() *[]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.data) == 0 {
		return nil
	}
	next := s.data[0]
	s.data = slices.Delete(s.data, 0, 1)
	next.pair.queued--
	<-s.slots
	return next.bytes
}

// appendDue appends the due control frames, up to about a message.
func (s *Session) appendDue(to []byte) []byte {
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
	for _, stream := range s.rejections {
		to = appendControl(to, typeRstStream, stream, statusReject)
	}
	s.rejections = s.rejections[:0]
	for len(s.openings) > 0 && len(to) < maxControl {
		next := s.openings[0]
		s.openings = slices.Delete(s.openings, 0, 1)
		to = s.appendOpening(to, next)
	}
	s.endings = slices.DeleteFunc(s.endings, func(p *Pair) bool {
		if p.queued > 0 || len(to) >= maxControl {
			return false
		}
		to = appendEnding(to, p)
		return true
	})
	return to
}

func (s *Session) appendOpening(to []byte, p *Pair) []byte {
	first := !s.hasOpened
	s.hasOpened = true
	p.opened = true
	port := strconv.Itoa(int(p.port))
	request := strconv.Itoa(int(p.dataID))
	to = appendSynStream(to, p.errorID, first,
		header{"streamtype", "error"}, header{"port", port}, header{"requestid", request})
	to = appendData(to, p.errorID, flagFin, nil) // this side reports no errors
	return appendSynStream(to, p.dataID, false,
		header{"streamtype", "data"}, header{"port", port}, header{"requestid", request})
}

// appendEnding appends the FIN or the reset of a pair after its data is written.
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
