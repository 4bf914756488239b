package portconn

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// carrier records what is sent, in pieces of up to three bytes. While full is not nil it takes nothing.
type carrier struct {
	mu     sync.Mutex
	sent   bytes.Buffer
	full   chan struct{}
	onSend func() // nil for none
	closed int
}

func (c *carrier) Send(p []byte, done, expired <-chan struct{}) (int, error) {
	if c.full != nil {
		select {
		case <-c.full:
		case <-done:
			return 0, net.ErrClosed
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		}
	}
	if c.onSend != nil {
		c.onSend()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent.Write(p[:min(len(p), 3)])
}

func (c *carrier) CloseWrite() error { return nil }
func (c *carrier) Close()            { c.closed++ }

func newConn(buffer *ReceiveBuffer) (*Conn, *carrier) {
	conn := New(Addr{"web-0", 80}, Addr{"here", 1}, buffer)
	carried := &carrier{}
	conn.SetCarrier(carried)
	return conn, carried
}

func TestConn_End(t *testing.T) {
	for name, c := range map[string]struct {
		script   func(c *Conn)
		want     error // nil is io.EOF itself
		text     string
		after    time.Duration
		writable error
	}{
		"in order":             {func(c *Conn) { c.EndData(); c.EndErrors() }, nil, "", 0, syscall.EPIPE},
		"report first":         {func(c *Conn) { c.EndErrors(); c.EndData() }, nil, "", 0, syscall.EPIPE},
		"without a report":     {func(c *Conn) { c.EndData() }, nil, "", reportTimeout, syscall.EPIPE},
		"broken after the end": {func(c *Conn) { c.EndData(); c.EndErrors(); c.Break(net.ErrClosed) }, nil, "", 0, syscall.EPIPE},
		"refused": {
			func(c *Conn) { c.ReceiveError([]byte("connection ")); c.ReceiveError([]byte("refused")); c.EndErrors() },
			syscall.ECONNREFUSED, "read portforward here:1->web-0:80: connection refused", 0, syscall.ECONNREFUSED,
		},
		"reset": {func(c *Conn) { c.Reset(5) }, syscall.ECONNRESET, "SPDY status 5", 0, syscall.ECONNRESET},
		"reset after a text": {
			func(c *Conn) { c.ReceiveError([]byte("\x1b[2Jno such pod\r\n")); c.Reset(5) }, nil, "no such pod", 0, nil,
		},
		"an error without a text": {func(c *Conn) { c.ReceiveError([]byte("\r\n")); c.EndErrors() }, nil, "without a text", 0, nil},
		"broken":                  {func(c *Conn) { c.Break(BreakError("web-0", io.EOF)) }, io.ErrUnexpectedEOF, "pod web-0 broke off", 0, nil},
		"broken with a reason of the peer's": {
			func(c *Conn) { c.Break(BreakError("web-0", errors.New("close 1008: \x1b[2Jgo\naway"))) },
			io.ErrUnexpectedEOF, "unexpected EOF: close 1008: go away", 0, nil,
		},
		"data after the end": {
			func(c *Conn) { c.EndData(); c.Receive([]byte("more")) }, io.ErrUnexpectedEOF, "after the end of the data", 0, nil,
		},
		"data after the end and the report": {
			func(c *Conn) { c.EndData(); c.EndErrors(); c.Receive([]byte("more")) }, nil, "", 0, syscall.EPIPE,
		},
		"broken by a time-out": {
			func(c *Conn) { c.Break(BreakError("web-0", os.ErrDeadlineExceeded)) }, io.ErrUnexpectedEOF, "i/o timeout", 0, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, carried := newConn(NewReceiveBuffer())
				conn.Receive([]byte("said"))
				c.script(conn)
				begin := time.Now()
				said, err := io.ReadAll(conn)
				assert.Equal(t, "said", string(said))
				assert.Equal(t, c.after, time.Since(begin))
				if c.text != "" {
					require.ErrorContains(t, err, c.text)
				} else {
					require.NoError(t, err)
				}
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
				}
				var timeout net.Error
				assert.False(t, errors.As(err, &timeout) && timeout.Timeout())
				_, err = conn.Write([]byte("x"))
				require.Error(t, err)
				if c.writable != nil {
					require.ErrorIs(t, err, c.writable)
				}
				require.NoError(t, conn.Close())
				require.ErrorIs(t, conn.Close(), net.ErrClosed)
				assert.Equal(t, 1, carried.closed)
				assert.Zero(t, conn.buffer.total)
				assert.Zero(t, conn.buffer.conns)
			})
		})
	}
}

func TestConn_WritesStayTogether(t *testing.T) {
	conn, carried := newConn(NewReceiveBuffer())
	var all sync.WaitGroup
	for _, letter := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			n, err := io.WriteString(conn, strings.Repeat(letter, 1000))
			assert.NoError(t, err)
			assert.Equal(t, 1000, n)
		})
	}
	all.Wait()
	text := carried.sent.String()
	assert.Len(t, text, 4000)
	for i := range 4 {
		assert.Equal(t, strings.Repeat(text[i*1000:i*1000+1], 1000), text[i*1000:(i+1)*1000])
	}
	require.NoError(t, conn.CloseWrite())
	_, err := conn.Write([]byte("more"))
	require.ErrorIs(t, err, syscall.EPIPE)
	require.NoError(t, conn.Close())
}

func TestConn_WriteBeforeQuickEnd(t *testing.T) {
	conn, carried := newConn(&ReceiveBuffer{})
	defer func() { _ = conn.Close() }()
	carried.onSend = func() { conn.EndData(); conn.EndErrors() }
	n, err := conn.Write([]byte("end"))
	require.NoError(t, err, "all bytes were sent")
	assert.Equal(t, 3, n)
	n, err = conn.Write([]byte("more"))
	require.ErrorIs(t, err, syscall.EPIPE)
	assert.Zero(t, n)

	conn, carried = newConn(&ReceiveBuffer{})
	defer func() { _ = conn.Close() }()
	carried.onSend = func() { conn.EndData(); conn.EndErrors() }
	n, err = conn.Write([]byte("half"))
	require.ErrorIs(t, err, syscall.EPIPE)
	assert.Equal(t, 3, n)
}

func TestConn_WaitsEnd(t *testing.T) {
	for name, end := range map[string]func(c *Conn) error{
		"by a deadline": func(c *Conn) error { return c.SetDeadline(time.Now()) },
		"by Close":      func(c *Conn) error { return c.Close() },
		"by a failure":  func(c *Conn) error { c.Break(io.ErrUnexpectedEOF); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, carried := newConn(NewReceiveBuffer())
				carried.full = make(chan struct{})
				require.NoError(t, conn.SetDeadline(time.Now().Add(time.Hour)))
				ended := make(chan error, 4)
				for range 2 { // the second waits for the first
					go func() { _, err := conn.Read(make([]byte, 1)); ended <- err }()
					go func() { _, err := conn.Write([]byte("x")); ended <- err }()
				}
				time.Sleep(time.Second)
				require.NoError(t, end(conn))
				for range cap(ended) {
					require.Error(t, <-ended)
				}
				_ = conn.Close()
			})
		})
	}
}

func TestConn_ClosedAfterDeadline(t *testing.T) {
	conn, _ := newConn(NewReceiveBuffer())
	require.NoError(t, conn.SetDeadline(time.Unix(1, 0)))
	require.NoError(t, conn.Close())
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = conn.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestConn_WaitRoomBoundsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		buffer := NewReceiveBuffer()
		slow, _ := newConn(buffer)
		fill := func() int {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			received := 0
			for {
				slow.WaitRoom(ctx.Done())
				if ctx.Err() != nil {
					return received
				}
				slow.Receive(make([]byte, 32<<10))
				received += 32 << 10
			}
		}
		assert.Equal(t, maxUnread, fill(), "alone")
		assert.True(t, slow.Behind())
		other, _ := newConn(buffer)
		assert.Equal(t, maxSharedUnread-maxUnread, fill(), "with another")
		assert.False(t, other.Behind())
		n, err := io.CopyN(io.Discard, slow, 1<<20)
		require.NoError(t, err)
		assert.EqualValues(t, 1<<20, n)
		assert.Equal(t, 1<<20, fill(), "after a read")
		require.NoError(t, slow.Close())
		slow.WaitRoom(nil) // returns
		assert.False(t, slow.Receive([]byte("x")))
		require.NoError(t, other.Close())
		assert.Zero(t, buffer.total)
	})
}

func TestConn_ErrorTextIsBounded(t *testing.T) {
	conn, _ := newConn(NewReceiveBuffer())
	for range 1000 {
		conn.ReceiveError(make([]byte, 1000))
	}
	assert.LessOrEqual(t, len(conn.errorText), maxErrorText)
	conn.EndErrors()
	_, err := conn.Read(make([]byte, 1))
	assert.Less(t, len(err.Error()), maxShownText+100)
	require.NoError(t, conn.Close())
}

func TestByteQueue_KeepsOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	var q byteQueue
	var want bytes.Buffer
	for range 1000 {
		if random.IntN(2) == 0 {
			p := make([]byte, random.IntN(3*chunkSize))
			for i := range p {
				p[i] = byte(random.Uint32())
			}
			q.write(p)
			want.Write(p)
			continue
		}
		got := make([]byte, random.IntN(3*chunkSize))
		got = got[:q.read(got)]
		require.Equal(t, want.Next(len(got)), got)
		require.Equal(t, want.Len(), q.size)
	}
	assert.Equal(t, want.Len(), q.drop())
}
