package stream

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// silence is how long a peer may say nothing before it counts as vanished: twelve pings and a second.
const silence = 12*pingEvery + time.Second

// errSilent is what ends a stream whose peer has vanished.
var errSilent = fmt.Errorf("the server has answered nothing for %v, not even a ping: %w", silence, os.ErrDeadlineExceeded)

// wire is the connection under a WebSocket and its TLS. Its time-out begins with each read, not with the last answer:
// while nobody reads because a writer of ours is slow, the peer is not to blame. A peer that has vanished stays so:
// bufio drops the error behind a line that is cut off, and would wait once more. Until the peer has answered at all,
// writes have that time-out, too; afterwards the reading side notices.
type wire struct {
	net.Conn

	answered atomic.Bool
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
	if n > 0 && !w.answered.Swap(true) {
		_ = w.SetWriteDeadline(time.Time{})
	}
	return n, err
}

func (w *wire) Write(p []byte) (int, error) {
	if w.answered.Load() {
		return w.Conn.Write(p)
	}
	_ = w.SetWriteDeadline(time.Now().Add(silence))
	n, err := w.Conn.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	return n, err
}
