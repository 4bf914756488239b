package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/transport"
)

// tunnelProtocol is SPDY in WebSocket messages: https://kep.k8s.io/4006.
const tunnelProtocol = "SPDY/3.1+portforward.k8s.io"

const (
	// firstData is the first data stream, after the first error stream. Streams of ours have odd numbers.
	firstData = 3
	// lastStream is the stream after which a tunnel takes no more; numbers are never used twice.
	lastStream = 1 << 30
	// maxUnwanted is how much a node may send of connections that were closed here before it costs it the tunnel.
	maxUnwanted = 1 << 20
	// replyWait is how long a node that says nothing may take to accept a connection in a tunnel that has carried
	// others. Nodes hand what comes in a tunnel to a few workers, each for some of the streams, and a worker is stuck
	// for good where a connection ended in the pod with input that nobody read.
	replyWait = 4 * time.Second
	// pongWait is how long a ping may go unanswered before its tunnel takes no connections.
	pongWait = replyWait / 16
	// spdyWorkers is how many workers nodes have; each ping goes to the next.
	spdyWorkers = 5
	// maxLeft is how many closed connections a tunnel may have that the node has not closed.
	maxLeft = 100
)

// nodeSilence is how long a node may say nothing, by a clock that is read with every ping.
const nodeSilence = silence - pingEvery - time.Second

// errNodeSilent is what ends a tunnel whose API server is there and whose node is not.
var errNodeSilent = fmt.Errorf("the node has answered nothing for %v, not even a ping", nodeSilence)

// tunnel carries connections to one pod's ports over one WebSocket. It is safe for concurrent use.
type tunnel struct {
	*sender
	pod     string
	backlog *backlog
	// changed is called when a connection was closed, and when the tunnel ended, without locks.
	changed func()
	opening chan struct{} // has one while streams are being opened: their numbers must go up

	// Only the reading goroutine touches these.
	in      io.Reader
	scratch []byte
	theirs  uint32 // the last stream that the node opened

	heard atomic.Int64 // when the node last gave a sign of life; 0 while this side does not listen

	mu       sync.Mutex
	streams  map[uint32]*tunneled // by the number of the data stream, and by that of the error stream
	last     uint32               // the last stream's number
	pings    uint32
	unheard  map[uint32]time.Time // pings that were not answered, by their number
	newest   uint32               // the last ping that was answered; 0 of nodes that answer none
	live     int                  // connections that are not closed here
	left     int                  // connections that are closed here, but not at the node
	unwanted int
	full     bool // takes no more connections
	leaving  bool // once all is dealt with
	parted   bool // said goodbye
	err      error
}

// tunneled is one connection in a tunnel.
type tunneled struct {
	tunnel       *tunnel
	conn         *portConn
	data, errors uint32
	opened       chan struct{} // closed when the node has taken both streams

	// Guarded by the tunnel's mu.
	replies  int
	finished bool // by this side
	gone     bool // closed here
	over     bool // at the node
}

// dialTunnel opens a tunnel to the pod at path. ctx ends the dialing alone.
func dialTunnel(ctx context.Context, conn *transport.Conn, path, pod string, changed func()) (*tunnel, error) {
	opened, err := dial(ctx, conn, path+"/portforward", nil, tunnelProtocol)
	if err != nil {
		return nil, err
	}
	if !opened.release() {
		opened.close()
		return nil, ended(ctx, ctx.Err())
	}
	t := &tunnel{
		pod: pod, backlog: newBacklog(), changed: changed, opening: make(chan struct{}, 1),
		in: &received{socket: opened}, scratch: make([]byte, messageSize), streams: map[uint32]*tunneled{},
		unheard: map[uint32]time.Time{},
	}
	t.sender = newSender(opened, t.broken)
	t.heard.Store(time.Now().UnixNano())
	go opened.beat()
	go t.receive()
	go func() {
		ticker := time.NewTicker(pingEvery)
		defer ticker.Stop()
		t.run(ticker.C, t.beat)
	}()
	return t, nil
}

// open opens a connection to a port. It is open when the node has taken it, which says nothing of the port itself:
// whether anybody listens there is only known once something is read or written.
func (t *tunnel) open(ctx context.Context, port uint16) (*portConn, error) {
	conn := newPortConn(portAddr{t.pod, port}, t.socket.LocalAddr(), t.backlog)
	opened := &tunneled{tunnel: t, conn: conn, opened: make(chan struct{})}
	conn.carrier = opened
	if err := t.start(ctx, opened); err != nil {
		return nil, err
	}
	checks := time.NewTicker(replyWait)
	defer checks.Stop()
	for {
		var err error
		select {
		case <-opened.opened:
			return conn, nil
		case <-conn.gone:
			if isClosed(opened.opened) {
				return conn, nil // what came after is for Read to tell
			}
			err = conn.failure
		case <-ctx.Done():
			err = ended(ctx, ctx.Err())
		case <-checks.C:
			if !t.stuck() {
				continue
			}
			t.leave()
			err = errTunnelFull
		}
		_ = conn.Close()
		return nil, err
	}
}

// start sends what opens a connection's two streams.
func (t *tunnel) start(ctx context.Context, opened *tunneled) error {
	select {
	case t.opening <- struct{}{}:
		defer func() { <-t.opening }()
	case <-t.done:
		return t.why()
	case <-ctx.Done():
		return ended(ctx, ctx.Err())
	}
	t.mu.Lock()
	if t.full || t.err != nil {
		t.mu.Unlock()
		return t.why()
	}
	first := t.last == 0
	opened.errors, opened.data = firstData-2, firstData
	if !first {
		opened.errors, opened.data = t.last+2, t.last+4
	}
	t.streams[opened.errors], t.streams[opened.data] = opened, opened
	t.last = opened.data
	t.full = t.last >= lastStream
	t.live++
	t.mu.Unlock()
	t.backlog.joined(1)
	port, request := fmt.Sprint(opened.conn.remote.port), fmt.Sprint(opened.data)
	// Once it is queued it must stay in line: the end of ctx does not take it back.
	err := t.put(nil, nil, func(b []byte) []byte {
		for _, kind := range []string{"error", "data"} {
			number := map[string]uint32{"error": opened.errors, "data": opened.data}[kind]
			b = appendSPDYSynStream(b, number, first && kind == "error",
				spdyHeader{"streamtype", kind}, spdyHeader{"port", port}, spdyHeader{"requestid", request})
			if kind == "error" {
				b = appendSPDYData(b, number, spdyFlagFin, nil) // nothing is ever said to the node on it
			}
		}
		return b
	})
	if err != nil {
		return brokenTunnel(t.pod, io.ErrUnexpectedEOF)
	}
	return nil
}

// why is the error of a tunnel that takes no connections.
func (t *tunnel) why() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	return errTunnelFull
}

var errTunnelFull = errors.New("the tunnel takes no more connections")

// beat asks the node for a sign of life.
func (t *tunnel) beat() *[]byte {
	heard := t.heard.Load()
	t.mu.Lock()
	answered := t.newest > 0
	t.mu.Unlock()
	if answered && heard != 0 && time.Since(time.Unix(0, heard)) > nodeSilence {
		t.end(errNodeSilent)
		return nil
	}
	return t.ping(1)
}

// ping is a message with so many pings.
func (t *tunnel) ping(count int) *[]byte {
	var frames []byte
	t.mu.Lock()
	defer t.mu.Unlock()
	for range count {
		t.pings += 2
		frames = appendSPDYControl(frames, spdyPing, t.pings-1)
		if len(t.unheard) < maxUnheard {
			t.unheard[t.pings-1] = time.Now()
		}
	}
	return message(frames)
}

// maxUnheard bounds what is kept of a node that answers no pings.
const maxUnheard = 100

// pong is called when the node has answered a ping.
func (t *tunnel) pong(number uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest = max(t.newest, number)
	delete(t.unheard, number)
}

// lagsLocked tells whether the node has left a ping unanswered and answered later ones: then one of its workers is
// stuck, or as good as.
func (t *tunnel) lagsLocked() bool {
	for number, sent := range t.unheard {
		if number+2*spdyWorkers <= t.newest && time.Since(sent) > pongWait {
			return true
		}
	}
	return false
}

// stuck tells whether there is little hope that the node will accept a connection.
func (t *tunnel) stuck() bool {
	heard := t.heard.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last > firstData && (t.lagsLocked() || heard != 0 && time.Since(time.Unix(0, heard)) > replyWait)
}

// message is a message of those bytes.
func message(content []byte) *[]byte {
	held := messages.Get().(*[]byte)
	*held = append((*held)[:0], content...)
	return held
}

// broken ends all connections.
func (t *tunnel) broken(err error) {
	t.mu.Lock()
	if !t.leaving || t.live > 0 {
		err = brokenTunnel(t.pod, err)
	}
	t.err, t.full = err, true
	streams := t.streams
	t.streams = map[uint32]*tunneled{}
	t.mu.Unlock()
	for _, stream := range streams {
		stream.conn.fail(err)
	}
	t.changed()
}

// brokenTunnel is the error of connections whose tunnel ended before them: never io.EOF, which would look like an end
// that the pod meant.
func brokenTunnel(pod string, err error) error {
	const text = "the connection to pod %s broke off: %w"
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf(text, pod, io.ErrUnexpectedEOF)
	case errors.Is(err, net.ErrClosed):
		return fmt.Errorf(text, pod, err)
	default:
		// Told in words alone: somebody who waits for a deadline of his own would take that of a ping for it.
		return fmt.Errorf(text+": %v", pod, io.ErrUnexpectedEOF, err)
	}
}

// leave lets the tunnel take no more connections, and closes it when the last is closed.
func (t *tunnel) leave() {
	t.mu.Lock()
	t.full = true
	t.mu.Unlock()
	t.settle()
}

// settle says goodbye when nobody is left, once the node has dealt with all that it was sent, or has had the time to.
func (t *tunnel) settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.full || t.live > 0 || t.err != nil:
	case t.left == 0:
		t.sayGoodbyeLocked()
	case !t.leaving:
		t.leaving = true
		time.AfterFunc(goodbyeWait, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.sayGoodbyeLocked()
		})
	}
}

func (t *tunnel) sayGoodbyeLocked() {
	t.leaving = true
	if !t.parted {
		t.parted = true
		t.goodbye()
	}
}

// load is how many connections the tunnel has, whether it may take others, and whether that had better wait.
func (t *tunnel) load() (live int, takes, behind bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	behind = t.lagsLocked()
	for _, stream := range t.streams {
		behind = behind || stream.conn.behind()
	}
	return t.live, !t.full && t.err == nil, behind
}
