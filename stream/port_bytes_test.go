package stream_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// portFault is what happens to one byte of a connection.
type portFault struct {
	kind string // "cut", "stall", or "corrupt" by flipping bits; "" is none
	flip byte
	down bool // to the client
	at   int  // the byte's number
}

func (f portFault) String() string {
	return fmt.Sprintf("%s %02x at byte %d, down=%v", f.kind, f.flip, f.at, f.down)
}

// faultyPortConn is the server's side of a connection with a fault.
type faultyPortConn struct {
	net.Conn
	fault      portFault
	mu         sync.Mutex
	down, up   int // bytes so far
	stalled    atomic.Bool
	over       chan struct{} // closed at the end of the test
	severOnce  sync.Once
	closedHere chan struct{}
}

// sever closes the connection for both sides.
func (f *faultyPortConn) sever() { f.severOnce.Do(func() { close(f.closedHere); _ = f.Conn.Close() }) }

// Close does not reach the client once the connection is stalled.
func (f *faultyPortConn) Close() error {
	if !f.stalled.Load() {
		f.sever()
	}
	return nil
}

// pass applies the fault to p, the bytes from number first on, and returns how many of them pass.
func (f *faultyPortConn) pass(p []byte, first int, down bool) int {
	at := f.fault.at - first
	if f.fault.down != down || at < 0 || at >= len(p) {
		return len(p)
	}
	switch f.fault.kind {
	case "cut":
		f.sever()
		return at
	case "stall":
		f.stalled.Store(true)
		return at
	case "corrupt":
		p[at] ^= f.fault.flip
	}
	return len(p)
}

func (f *faultyPortConn) Write(p []byte) (int, error) {
	f.mu.Lock()
	first := f.down
	f.down += len(p)
	f.mu.Unlock()
	if f.stalled.Load() && f.fault.down {
		return len(p), nil
	}
	sent := bytes.Clone(p)
	if f.fault.kind == "cut" && f.fault.down && f.fault.at >= first && f.fault.at < first+len(p) {
		_, _ = f.Conn.Write(sent[:f.fault.at-first])
		f.sever()
		return 0, net.ErrClosed
	}
	if n, err := f.Conn.Write(sent[:f.pass(sent, first, true)]); err != nil {
		return n, err
	}
	return len(p), nil
}

func (f *faultyPortConn) Read(p []byte) (int, error) {
	if f.stalled.Load() && !f.fault.down {
		select {
		case <-f.over:
		case <-f.closedHere:
		}
		return 0, net.ErrClosed
	}
	n, err := f.Conn.Read(p)
	f.mu.Lock()
	first := f.up
	f.up += n
	f.mu.Unlock()
	return f.pass(p[:n], first, false), err
}

// faultyPortListener gives one of its connections a fault.
type faultyPortListener struct {
	*memory
	number int // of the connection with the fault, from 1
	fault  portFault
	over   chan struct{}

	mu       sync.Mutex
	accepted int
	chosen   *faultyPortConn
	open     atomic.Int32 // the client's connections
}

func (l *faultyPortListener) Accept() (net.Conn, error) {
	conn, err := l.memory.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accepted++; l.accepted != l.number {
		return conn, nil
	}
	l.chosen = &faultyPortConn{Conn: conn, fault: l.fault, over: l.over, closedHere: make(chan struct{})}
	return l.chosen, nil
}

// countedConn is a client's connection.
type countedConn struct {
	net.Conn
	once sync.Once
	open *atomic.Int32
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func (l *faultyPortListener) dialCounted(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &countedConn{Conn: conn, open: &l.open}, nil
}

const (
	portQuestion = "hello, pod"
	portAnswer   = "hello, client"
)

// portOutcome is what a client and a pod saw of one connection.
type portOutcome struct {
	err      error
	said     string
	asked    string        // what the pod got
	dialed   time.Duration // until there was a connection, or none
	took     time.Duration // after that
	down, up int           // bytes of the connection
}

// portExchange asks a pod over a connection with a fault, in a bubble.
func portExchange(t *testing.T, number int, fault portFault, handler func(pod chan<- string) http.HandlerFunc) (seen portOutcome) {
	synctest.Test(t, func(t *testing.T) {
		pod := make(chan string, 10)
		listener := &faultyPortListener{
			memory: &memory{conns: make(chan net.Conn), closed: make(chan struct{})},
			number: number, fault: fault, over: make(chan struct{}),
		}
		server := httptest.NewUnstartedServer(handler(pod))
		require.NoError(t, server.Listener.Close())
		server.Listener = listener
		server.Config.ErrorLog = nil
		server.Start()
		client := &http.Client{Transport: &http.Transport{DialContext: listener.dialCounted}}
		conn, err := transport.New("http://server.test", client, nil)
		require.NoError(t, err)

		askPort(t, pods{conn}, &seen)
		time.Sleep(10 * time.Second) // for the tunnel's goodbye
		conn.Close()
		client.CloseIdleConnections()
		synctest.Wait()
		assert.Zero(t, listener.open.Load(), "%v: connections that are left", fault)
		close(listener.over)
		if listener.chosen != nil {
			listener.chosen.sever()
			listener.chosen.mu.Lock()
			seen.down, seen.up = listener.chosen.down, listener.chosen.up
			listener.chosen.mu.Unlock()
		}
		server.Close()
		select {
		case seen.asked = <-pod:
		default:
		}
	})
	return seen
}

// portBound is how long a client may be left without a result by a peer that is silent.
const portBound = 62 * time.Second

// patienceOfClient is the deadline of a client whose peer lives, and whose bytes make it wait for more that never come.
const patienceOfClient = 3 * time.Minute

// askPort opens a connection, sends the question and reads the answer.
func askPort(t *testing.T, pods pods, seen *portOutcome) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), portBound) // the handshake has no time-out of its own
	defer cancel()
	conn, err := stream.DialPort(ctx, pods, "web-0", 80)
	seen.dialed = time.Since(begin)
	if err != nil {
		seen.err = err
		return
	}
	defer closed(t, conn)
	begin = time.Now()
	defer func() { seen.took = time.Since(begin) }()
	require.NoError(t, conn.SetDeadline(begin.Add(patienceOfClient)))
	if _, seen.err = io.WriteString(conn, portQuestion); seen.err != nil {
		return
	}
	_ = conn.(halfCloser).CloseWrite() // the legacy channels cannot
	said, err := io.ReadAll(conn)
	seen.said, seen.err = string(said), err
}

// answeringPort is a server whose pods answer the question over tunnels. It hangs up on what it does not understand.
func answeringPort(pod chan<- string) http.HandlerFunc {
	return unreadable(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{Subprotocols: []string{tunnelProtocol}}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		n := &node{ws: ws}
		streams, asked := 0, ""
		for {
			f, ok := n.strict()
			switch {
			case !ok:
				return
			case f.kind == syn:
				streams++
				kind := map[uint32]string{1: "error", 3: "data"}[f.stream]
				if !bytes.Contains(f.payload, []byte("streamtype\x00\x00\x00"+string(rune(len(kind)))+kind)) ||
					!bytes.Contains(f.payload, []byte("port\x00\x00\x00\x0280")) {
					n.control(rst, f.stream, 1)
					continue
				}
				n.control(reply, f.stream)
			case f.kind == rst:
				return
			case f.kind == 0 && f.stream == 3:
				asked += string(f.payload)
				if f.flags&fin != 0 {
					pod <- asked
					n.data(3, 0, portAnswer[:5])
					n.data(3, 0, portAnswer[5:])
					n.data(3, fin, "")
					n.data(1, fin, "")
				}
			}
		}
	})
}

// strict reads a frame as a node does that ends the tunnel at the first one that makes no sense.
func (n *node) strict() (f frame, ok bool) {
	for {
		header := make([]byte, 8)
		if _, err := io.ReadFull(n, header); err != nil {
			return f, false
		}
		first, second := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[4:])
		if second&0xffffff > 1<<20 {
			return f, false
		}
		f = frame{stream: first, flags: header[4], payload: make([]byte, second&0xffffff)}
		if _, err := io.ReadFull(n, f.payload); err != nil {
			return f, false
		}
		if first>>31 == 1 {
			if first>>16 != 0x8003 || len(f.payload) < 4 {
				return f, false
			}
			f.kind, f.stream = uint16(first), binary.BigEndian.Uint32(f.payload)
		}
		if f.kind != ping {
			return f, true
		}
		n.control(ping, f.stream)
	}
}

// answeringChannels is an older server whose pods answer the question.
func answeringChannels(pod chan<- string) http.HandlerFunc {
	return unreadable(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Sec-WebSocket-Protocol") != v4 {
			w.Header().Set("Connection", "close")
			http.Error(w, `query parameter "port" is required`, http.StatusBadRequest)
			return
		}
		ws, err := (&websocket.Upgrader{Subprotocols: []string{v4}}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = ws.Close() }()
		say(ws, "\x00P\x00", "\x01P\x00")
		asked := ""
		for len(asked) < len(portQuestion) {
			_, message, err := ws.ReadMessage()
			if err != nil || len(message) == 0 || message[0] != 0 {
				return
			}
			asked += string(message[1:])
		}
		pod <- asked
		say(ws, "\x00"+portAnswer[:5], "\x00"+portAnswer[5:])
		goodbye(ws)
		hear(ws)
	})
}

// differingBytes counts the bytes in which a text differs from another of its length; -1 if it has another length.
func differingBytes(a, b string) (count int) {
	if len(a) != len(b) {
		return -1
	}
	for i := range len(a) {
		if a[i] != b[i] {
			count++
		}
	}
	return count
}

// TestDialPort_EveryByte cuts, stalls and corrupts a connection at each of its bytes. The client must get the answer or an
// error in time, and leave no goroutine (the bubble would not end) and no connection.
func TestDialPort_EveryByte(t *testing.T) {
	for name, c := range map[string]struct {
		handler func(pod chan<- string) http.HandlerFunc
		number  int // of the connection: a request for the pod comes before, and that for a tunnel before the legacy one
	}{"tunnel": {answeringPort, 2}, "channels": {answeringChannels, 3}} {
		t.Run(name, func(t *testing.T) {
			whole := portExchange(t, c.number, portFault{}, c.handler)
			require.NoError(t, whole.err)
			require.Equal(t, portAnswer, whole.said)
			require.Equal(t, portQuestion, whole.asked)
			require.Less(t, whole.down+whole.up, 32<<10)
			counts := map[string]int{}
			for _, one := range []portFault{
				{kind: "cut", down: true}, {kind: "cut"}, {kind: "stall", down: true}, {kind: "stall"},
				{kind: "corrupt", flip: 1, down: true}, {kind: "corrupt", flip: 1},
				{kind: "corrupt", flip: 0x80, down: true}, {kind: "corrupt", flip: 0x80},
			} {
				size := whole.up
				if one.down {
					size = whole.down
				}
				for one.at = range size {
					seen := portExchange(t, c.number, one, c.handler)
					counts[one.kind+": "+judgePortOutcome(t, one, seen)]++
					if t.Failed() {
						return
					}
				}
			}
			for _, line := range slices.Sorted(maps.Keys(counts)) {
				t.Logf("%s: %d", line, counts[line])
			}
			t.Logf("%d bytes down, %d up", whole.down, whole.up)
		})
	}
}

// judgePortOutcome checks one outcome and names its class.
func judgePortOutcome(t *testing.T, one portFault, seen portOutcome) string {
	t.Helper()
	assert.LessOrEqual(t, seen.dialed, portBound, "%v: %v", one, seen.err)
	assert.LessOrEqual(t, seen.took, patienceOfClient, "%v: %v", one, seen.err)
	if one.kind != "corrupt" {
		assert.LessOrEqual(t, seen.took, portBound, "%v: %v", one, seen.err)
		assert.True(t, strings.HasPrefix(portAnswer, seen.said), "%v: %q", one, seen.said)
		assert.True(t, seen.asked == "" || seen.asked == portQuestion, "%v: the pod got %q", one, seen.asked)
	}
	switch {
	case seen.err == nil && one.kind == "corrupt" && seen.said != portAnswer:
		// Neither protocol has a checksum (TLS has): a byte of the answer may be another, or a length too long.
		assert.True(t, differingBytes(portAnswer, seen.said) == 1 || strings.HasPrefix(seen.said, portAnswer), "%v: %q", one, seen.said)
		return "another answer, undetected"
	case seen.err == nil:
		assert.Equal(t, portAnswer, seen.said, "%v", one)
		return "the answer"
	case seen.took >= patienceOfClient:
		require.ErrorIs(t, seen.err, os.ErrDeadlineExceeded, "%v", one)
		return "the caller's deadline"
	default:
		return "an error"
	}
}
