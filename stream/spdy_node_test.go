package stream_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
)

const tunnelProtocol = "SPDY/3.1+portforward.k8s.io"

// node is the far end of a tunnel, by its own reading of SPDY.
type node struct {
	t       *testing.T
	ws      *websocket.Conn
	message io.Reader
	opened  int         // streams
	mute    atomic.Bool // responds to no pings
	writing sync.Mutex
}

// tunneling is a server whose nodes act by the script, one for each tunnel. Its pods cannot be read.
func tunneling(t *testing.T, script func(*node)) http.HandlerFunc {
	return unreadable(upgrading(t, func(ws *websocket.Conn, _ *http.Request) { script(&node{t: t, ws: ws}) }, tunnelProtocol))
}

// unreadable refuses all requests but those that ask for a stream.
func unreadable(streams http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Connection", "close") // each stream has a connection of its own
			http.Error(w, "pods cannot be read", http.StatusForbidden)
			return
		}
		streams(w, r)
	}
}

// portServing is serving, and then waits until tunnels are closed.
func portServing(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, pods pods)) {
	serving(t, handler, func(t *testing.T, pods pods) {
		defer time.Sleep(10 * time.Second)
		test(t, pods)
	})
}

// closed closes what a test has opened, and may have closed itself.
func closed(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		assert.NoError(t, err)
	}
}

func (n *node) Read(p []byte) (int, error) {
	for {
		if n.message == nil {
			_, message, err := n.ws.NextReader()
			if err != nil {
				return 0, err
			}
			n.message = message
		}
		count, err := n.message.Read(p)
		if err == io.EOF {
			n.message = nil
			err = nil
		}
		if count > 0 || err != nil {
			return count, err
		}
	}
}

// frame is one that the other side sent: kind 0 is data.
type frame struct {
	kind    uint16
	stream  uint32
	flags   byte
	payload []byte
}

const (
	fin   = 1
	syn   = 1
	reply = 2
	rst   = 3
	ping  = 6
	gone  = 7
)

// next reads a frame; ok is false at the end. Pings get their responses.
func (n *node) next() (f frame, ok bool) {
	for {
		header := make([]byte, 8)
		if _, err := io.ReadFull(n, header); err != nil {
			return f, false
		}
		first := binary.BigEndian.Uint32(header)
		second := binary.BigEndian.Uint32(header[4:])
		f = frame{stream: first, flags: header[4], payload: make([]byte, second&0xffffff)}
		if _, err := io.ReadFull(n, f.payload); err != nil {
			return f, false
		}
		if first>>31 == 1 {
			assert.EqualValues(n.t, 3, first>>16&0x7fff, "the version")
			f.kind = uint16(first)
			f.stream = binary.BigEndian.Uint32(f.payload)
		}
		if f.kind != ping {
			return f, true
		}
		if !n.mute.Load() {
			n.control(ping, f.stream)
		}
	}
}

// headers reads those of a frame that opens a stream.
func (n *node) headers(f frame) map[string]string {
	block := f.payload[10:]
	if n.opened == 0 {
		assert.Equal(n.t, []byte{0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2}, block[:6], "zlib with the dictionary of SPDY/3")
		block = block[6:]
	}
	n.opened++
	size := binary.LittleEndian.Uint16(block[1:])
	assert.Equal(n.t, size, ^binary.LittleEndian.Uint16(block[3:]))
	assert.Equal(n.t, []byte{0, 0, 0, 0xff, 0xff}, block[5+size:])
	text := block[9 : 5+size]
	word := func() string {
		length := binary.BigEndian.Uint32(text)
		word := string(text[4 : 4+length])
		text = text[4+length:]
		return word
	}
	all := map[string]string{}
	for len(text) > 0 {
		name := word()
		all[name] = word()
	}
	return all
}

// accepted is a connection that came in.
type accepted struct{ data, errors uint32 }

// accept takes the next connection, which must be to port 80. Frames before it are dropped.
func (n *node) accept() (conn accepted, ok bool) {
	for {
		f, ok := n.next()
		if !ok {
			return conn, false
		}
		if f.kind == syn && n.join(&conn, f) {
			return conn, true
		}
	}
}

// join takes one of a connection's two streams, and accepts it when it has both.
func (n *node) join(conn *accepted, f frame) bool {
	headers := n.headers(f)
	assert.Equal(n.t, "80", headers["port"])
	assert.NotEmpty(n.t, headers["requestid"])
	if headers["streamtype"] == "error" {
		conn.errors = f.stream
		return false
	}
	assert.Equal(n.t, "data", headers["streamtype"])
	conn.data = f.stream
	n.control(reply, conn.errors, 0xabcdef)
	n.control(reply, conn.data, 0xabcdef)
	return true
}

// each accepts all connections and hands received data to respond.
func (n *node) each(respond func(stream uint32, text string)) {
	var conn accepted
	for {
		f, ok := n.next()
		switch {
		case !ok:
			return
		case f.kind == syn:
			n.join(&conn, f)
		case f.kind == 0 && len(f.payload) > 0:
			respond(f.stream, string(f.payload))
		}
	}
}

func (n *node) control(kind uint16, words ...uint32) {
	frame := binary.BigEndian.AppendUint32(nil, 0x80030000|uint32(kind))
	frame = binary.BigEndian.AppendUint32(frame, uint32(4*len(words)))
	for _, word := range words {
		frame = binary.BigEndian.AppendUint32(frame, word)
	}
	n.raw(frame)
}

func (n *node) data(stream uint32, flags byte, text string) {
	frame := binary.BigEndian.AppendUint32(nil, stream)
	frame = binary.BigEndian.AppendUint32(frame, uint32(flags)<<24|uint32(len(text)))
	n.raw(append(frame, text...))
}

func (n *node) raw(bytes []byte) {
	n.writing.Lock()
	defer n.writing.Unlock()
	_ = n.ws.WriteMessage(websocket.BinaryMessage, bytes)
}

// rest reads to the end.
func (n *node) rest() (frames []frame) {
	for {
		f, ok := n.next()
		if !ok {
			return frames
		}
		frames = append(frames, f)
	}
}
