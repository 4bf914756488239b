package stream

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// silence is how long a peer may say nothing before it counts as vanished: twelve pings and a second.
const silence = 12*pingEvery + time.Second

// errSilent is what ends a stream whose peer has vanished.
var errSilent = fmt.Errorf("the server has answered nothing for %v, not even a ping: %w", silence, os.ErrDeadlineExceeded)

// wire is the connection under an open WebSocket. Its time-out begins with each read, not with the last answer: while
// nobody reads because a writer of ours is slow, the peer is not to blame. A peer that has vanished stays so: bufio drops
// the error behind a frame that is cut off, and would wait once more.
type wire struct {
	net.Conn
	vanished bool // used by the reading goroutine
}

func (w *wire) Read(p []byte) (int, error) {
	if w.vanished {
		return 0, errSilent
	}
	_ = w.SetReadDeadline(time.Now().Add(silence)) // where that fails, reading does
	n, err := w.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.vanished, err = true, errSilent
	}
	return n, err
}
