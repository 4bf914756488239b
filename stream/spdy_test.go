package stream

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFramesThatOpenAStream(t *testing.T) {
	first := appendSPDYSynStream(nil, 1, true, spdyHeader{"port", "80"})
	assert.Equal(t, "\x80\x03\x00\x01\x00\x00\x00\x2c"+ // SYN_STREAM of SPDY/3, 44 bytes
		"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"+ // stream 1, with no other, priority 0, slot 0
		"\x78\xbb\xe3\xc6\xa7\xc2"+ // zlib with the dictionary of SPDY/3
		"\x00\x12\x00\xed\xff"+ // 18 bytes, stored
		"\x00\x00\x00\x01\x00\x00\x00\x04port\x00\x00\x00\x0280"+
		"\x00\x00\x00\xff\xff", string(first)) // flushed
	next := appendSPDYSynStream([]byte("before"), 3, false, spdyHeader{"port", "80"})
	assert.Equal(t, "before"+strings.Replace(strings.Replace(strings.Replace(string(first),
		"\x78\xbb\xe3\xc6\xa7\xc2", "", 1), "\x00\x00\x00\x2c", "\x00\x00\x00\x26", 1), "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00", 1),
		string(next))
}

func TestFramesThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct{ bytes, want string }{
		"nothing":           {"", "EOF"},
		"half a header":     {"\x00\x00\x00", "unexpected EOF"},
		"no stream":         {"\x00\x00\x00\x00\x00\x00\x00\x01x", "on no stream"},
		"another version":   {"\x80\x02\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01", "version 2"},
		"a short reset":     {"\x80\x03\x00\x03\x00\x00\x00\x04\x00\x00\x00\x01", "too few"},
		"half of a reset":   {"\x80\x03\x00\x03\x00\x00\x00\x08\x00\x00\x00\x01", "unexpected EOF"},
		"a reset cut short": {"\x80\x03\x00\x03\x00\x00\x00\x08", "unexpected EOF"},
	} {
		_, err := readSPDYFrame(strings.NewReader(c.bytes))
		require.ErrorContains(t, err, c.want, name)
		assert.Equal(t, c.want == "EOF", err == io.EOF, name) //nolint:errorlint // itself
	}
}

// opened is a tunnel that one connection is open in, and no socket.
func opened(in io.Reader) (*tunnel, *portConn) {
	t := &tunnel{
		pod: "web-0", backlog: newBacklog(), changed: func() {}, in: in, scratch: make([]byte, messageSize),
		streams: map[uint32]*tunneled{}, unheard: map[uint32]time.Time{},
	}
	t.sender = &sender{queue: make(chan *[]byte, queuedMessages), done: make(chan struct{})}
	t.over.Do(func() { close(t.done) }) // nobody sends
	conn := newPortConn(portAddr{"web-0", 80}, nil, t.backlog)
	stream := &tunneled{tunnel: t, conn: conn, data: firstData, errors: firstData - 2, opened: make(chan struct{})}
	conn.carrier = stream
	t.streams[1], t.streams[3], t.last, t.live = stream, stream, 3, 1
	return t, conn
}

// FuzzTunnel shows that whatever a node sends ends in bytes that it sent as data and an error, and in no panic.
func FuzzTunnel(f *testing.F) {
	f.Add(appendSPDYData(nil, 3, 0, []byte("hello")))
	f.Add(appendSPDYData(appendSPDYData(nil, 3, spdyFlagFin, []byte("bye")), 1, spdyFlagFin, nil))
	f.Add(appendSPDYData(appendSPDYControl(nil, spdyRstStream, 3, 5), 1, spdyFlagFin, []byte("refused")))
	f.Add(appendSPDYControl(appendSPDYControl(appendSPDYControl(nil, spdyPing, 1), spdyPing, 2), spdyGoAway, 3, 0))
	f.Add(appendSPDYSynStream(appendSPDYControl(nil, spdySynReply, 3), 2, true, spdyHeader{"a", "b"}))
	f.Fuzz(func(t *testing.T, sent []byte) {
		tunnel, conn := opened(bytes.NewReader(sent))
		for {
			frame, err := readSPDYFrame(tunnel.in)
			if err == nil {
				err = tunnel.handle(frame)
			}
			if err != nil {
				conn.fail(brokenTunnel("web-0", err))
				break
			}
		}
		said, err := io.ReadAll(conn)
		assert.LessOrEqual(t, len(said), len(sent))
		if err == nil {
			assert.GreaterOrEqual(t, bytes.Count(sent, []byte{0, 0, 0, 3}), 1, "an end that nobody sent")
		}
		assert.NoError(t, conn.Close())
		assert.Zero(t, tunnel.backlog.total)
	})
}

// FuzzLegacyChannels shows the same of the older protocol's messages.
func FuzzLegacyChannels(f *testing.F) {
	f.Add([]byte("\x00P\x00"), []byte("\x00hello"), []byte("\x01P\x00refused"))
	f.Add([]byte(""), []byte("\x00P"), []byte("\x00\x00x"))
	f.Fuzz(func(t *testing.T, first, second, third []byte) {
		c := &legacyConn{unread: newBacklog(), sender: &sender{done: make(chan struct{})}}
		c.conn = newPortConn(portAddr{"web-0", 80}, nil, c.unread)
		close(c.done)
		var data []byte
		for _, message := range [][]byte{first, second, third} {
			if err := c.handle(bytes.NewReader(message), make([]byte, 8)); err != nil {
				break
			}
			if message[0] == legacyData {
				data = append(data, message[1:]...)
			}
		}
		want := bytes.TrimPrefix(data, binary.LittleEndian.AppendUint16(nil, 80))
		got := make([]byte, len(want))
		c.conn.mu.Lock()
		size := c.conn.unread.size
		n := c.conn.unread.read(got)
		c.conn.mu.Unlock()
		if len(data) >= 2 {
			assert.Equal(t, want, got[:n])
			assert.Equal(t, len(want), size)
		}
	})
}
