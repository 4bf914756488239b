package stream

import (
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// pingEvery is how often a peer is asked whether it is still there.
const pingEvery = 5 * time.Second

// socket is an open WebSocket. One goroutine may read and another write; beat, release and close are safe beside them.
// Reading fails with errSilent where the peer has vanished, provided that beat runs.
type socket struct {
	*websocket.Conn
	raw     net.Conn
	release func() bool // parts the socket from the ctx that it was opened with, whose end closes it
	pongs   chan string
	closing sync.Once
	closed  chan struct{}
}

func newSocket(ws *websocket.Conn, raw net.Conn, release func() bool) *socket {
	s := &socket{Conn: ws, raw: raw, release: release, pongs: make(chan string, 1), closed: make(chan struct{})}
	// gorilla's own handlers write from the reading goroutine, which then waits behind a writer that is stuck, and
	// their write deadline of a second breaks a connection that is merely full.
	ws.SetPingHandler(func(text string) error {
		select {
		case s.pongs <- text:
		default:
		}
		return nil
	})
	ws.SetCloseHandler(func(int, string) error { return nil })
	return s
}

// beat asks the peer for a sign of life, and answers when it asks, until the socket is closed.
func (s *socket) beat() {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		var err error
		select {
		case <-s.closed:
			return
		case <-ticker.C:
			err = s.WriteControl(websocket.PingMessage, nil, time.Time{})
		case text := <-s.pongs:
			err = s.WriteControl(websocket.PongMessage, []byte(text), time.Time{})
		}
		if err != nil {
			return // the reader will hear of it
		}
	}
}

// close ends the connection at once and wakes whoever reads or writes. The raw connection is closed, because closing
// that of TLS says goodbye first and may wait for seconds to be able to.
func (s *socket) close() {
	s.closing.Do(func() {
		s.release()
		close(s.closed)
		_ = s.raw.Close()
	})
}
