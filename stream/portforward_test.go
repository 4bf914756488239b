package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/stream"
)

func TestDialPort_EndOfConnection(t *testing.T) {
	for name, c := range map[string]struct {
		script   func(n *node, c accepted)
		response string
		want     error  // nil for a proper end
		text     string // of the error
	}{
		"properly": {
			func(n *node, c accepted) {
				n.data(c.data, 0, "by")
				n.data(c.data, fin, "e")
				n.data(c.errors, fin, "")
			}, "bye", nil, "",
		},
		"properly, the end of errors first": {
			func(n *node, c accepted) { n.data(c.errors, fin, ""); n.data(c.data, fin, "bye") }, "bye", nil, "",
		},
		"properly, without an end of errors": {
			func(n *node, c accepted) { n.data(c.data, fin, "bye") }, "bye", nil, "",
		},
		"refused": {
			func(n *node, c accepted) {
				n.data(c.errors, 0, "dial tcp: connection ")
				n.data(c.errors, 0, "refused\n")
				n.control(rst, c.data, 5)
				n.control(rst, c.errors, 5)
			}, "", syscall.ECONNREFUSED, "connection refused",
		},
		"refused, by a node that ends the data first": {
			func(n *node, c accepted) {
				n.data(c.data, fin, "")
				n.data(c.errors, fin, "connection refused")
			}, "", syscall.ECONNREFUSED, "connection refused",
		},
		"broken in the pod": {
			func(n *node, c accepted) { n.data(c.data, 0, "half"); n.data(c.errors, fin, "broken pipe") }, "half", nil, "broken pipe",
		},
		"reset": {
			func(n *node, c accepted) { n.data(c.data, 0, "half"); n.control(rst, c.data, 5) }, "half", syscall.ECONNRESET, "reset",
		},
		"the tunnel ends properly before it": {
			func(n *node, c accepted) { n.data(c.data, 0, "half"); closeNormally(n.ws) }, "half", io.ErrUnexpectedEOF, "pod web-0 broke off",
		},
		"the tunnel is cut": {
			func(n *node, c accepted) { n.data(c.data, 0, "half"); _ = n.ws.Close() }, "half", io.ErrUnexpectedEOF, "pod web-0 broke off",
		},
		"the tunnel is cut within a frame": {
			func(n *node, c accepted) {
				n.raw([]byte{0, 0, 0, byte(c.data), 0, 0, 0, 9, 'h', 'a'})
				_ = n.ws.Close()
			},
			"ha", io.ErrUnexpectedEOF, "pod web-0 broke off",
		},
		"what comes is no SPDY": {
			func(n *node, _ accepted) { n.raw([]byte("HTTP/1.1 200 OK")) }, "", io.ErrUnexpectedEOF, "the stream is not open",
		},
		"what comes is SPDY of another version": {
			func(n *node, _ accepted) { n.raw([]byte{0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1}) }, "", io.ErrUnexpectedEOF, "version 2",
		},
		"what comes is text": {
			func(n *node, _ accepted) { _ = n.ws.WriteMessage(websocket.TextMessage, []byte("hello")) }, "", io.ErrUnexpectedEOF, "text",
		},
		"frames of no interest between": {
			func(n *node, c accepted) {
				n.control(4, 0)             // SETTINGS
				n.control(9, c.data, 1<<16) // WINDOW_UPDATE
				n.control(8, c.data, 0)     // HEADERS
				n.control(ping, 2)          // a ping of the node's own
				n.control(syn, 2, 0, 0)     // a stream of the node's own
				n.data(2, 0, "for nobody")  // and data on none
				n.data(c.data, fin, "bye")
				n.data(c.errors, fin, "")
			}, "bye", nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			portServing(t, tunneling(t, func(n *node) {
				if conn, ok := n.accept(); assert.True(t, ok) {
					c.script(n, conn)
					n.rest()
				}
			}), func(t *testing.T, pods pods) {
				conn, err := stream.DialPort(t.Context(), pods, "web-0", 80)
				require.NoError(t, err)
				defer closed(t, conn)
				response, err := io.ReadAll(conn)
				assert.Equal(t, c.response, string(response))
				if c.text == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, c.text)
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
				}
				_, again := conn.Read(make([]byte, 1))
				require.ErrorIs(t, again, errors.Unwrap(err))
				_, err = conn.Write([]byte("x"))
				require.Error(t, err)
			})
		})
	}
}

func TestTunnel_WireFormat(t *testing.T) {
	portServing(t, tunneling(t, func(n *node) {
		n.accept()
		n.mute.Store(true)
		n.control(ping, 2)
		n.control(syn, 4, 0, 0)
		var responses []string
		for _, f := range n.rest() {
			responses = append(responses, fmt.Sprint(f.kind, " ", f.stream, " ", f.flags, " ", string(f.payload)))
		}
		assert.Equal(t, []string{
			"3 4 0 \x00\x00\x00\x04\x00\x00\x00\x03", // it refuses the stream; next does not return pings
			"0 3 0 hello",
			"0 3 1 ",
			"3 3 0 \x00\x00\x00\x03\x00\x00\x00\x05", // Close cancels what the node has not ended
		}, responses)
	}), func(t *testing.T, pods pods) {
		conn, err := stream.DialPort(t.Context(), pods, "web-0", 80)
		require.NoError(t, err)
		synctest.Wait()
		_, err = io.WriteString(conn, "hello")
		require.NoError(t, err)
		require.NoError(t, conn.(halfCloser).CloseWrite())
		_, err = io.WriteString(conn, "more")
		require.ErrorIs(t, err, syscall.EPIPE)
		require.NoError(t, conn.Close())
		require.Error(t, conn.SetDeadline(time.Now()))
	})
}

func TestDialPort_VanishedPeerTimesOut(t *testing.T) {
	for name, script := range map[string]func(*node){
		"the API server": func(n *node) { n.accept(); time.Sleep(70 * time.Second) },
		"the node": func(n *node) {
			n.accept()
			time.AfterFunc(time.Minute, func() { n.mute.Store(true) })
			n.rest() // the server still responds to the pings of WebSocket
		},
	} {
		t.Run(name, func(t *testing.T) {
			portServing(t, tunneling(t, script), func(t *testing.T, pods pods) {
				conn, err := stream.DialPort(t.Context(), pods, "web-0", 80)
				require.NoError(t, err)
				defer closed(t, conn)
				begin := time.Now()
				_, err = conn.Read(make([]byte, 1))
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				require.ErrorContains(t, err, "sent nothing for")
				require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
				if name == "the node" {
					begin = begin.Add(time.Minute)
				}
				assert.LessOrEqual(t, time.Since(begin), 61*time.Second)
			})
		})
	}
}

func TestDialPort_IdleConnectionLasts(t *testing.T) {
	for name, mute := range map[string]bool{"that respond to pings": false, "that respond to none": true} {
		t.Run(name, func(t *testing.T) {
			portServing(t, tunneling(t, func(n *node) {
				c, _ := n.accept()
				n.mute.Store(mute)
				time.AfterFunc(time.Hour, func() { n.data(c.data, fin, "still here"); n.data(c.errors, fin, "") })
				n.rest()
			}), func(t *testing.T, pods pods) {
				conn, err := stream.DialPort(t.Context(), pods, "web-0", 80)
				require.NoError(t, err)
				defer closed(t, conn)
				response, err := io.ReadAll(conn)
				require.NoError(t, err)
				assert.Equal(t, "still here", string(response))
			})
		})
	}
}

// TestPortDialer_LaggingReader has a connection that nobody reads share a tunnel: it goes on while no more than
// 4 MiB are unread, and later ones take another tunnel.
func TestPortDialer_LaggingReader(t *testing.T) {
	var tunnels atomic.Int32
	portServing(t, tunneling(t, func(n *node) {
		tunnels.Add(1)
		n.each(func(id uint32, text string) {
			if text != "much" {
				n.data(id, 0, text)
				return
			}
			for range 3 << 20 / 32768 {
				n.data(id, 0, strings.Repeat("x", 32768))
			}
		})
	}), func(t *testing.T, pods pods) {
		dialer := &stream.PortDialer{Target: pods, MaxTunnels: 1}
		defer closed(t, dialer)
		open := func() net.Conn {
			conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
			require.NoError(t, err)
			return conn
		}
		slow := open()
		quick := open()
		defer closed(t, slow)
		defer closed(t, quick)
		_, err := io.WriteString(slow, "much")
		require.NoError(t, err)
		synctest.Wait()
		assert.EqualValues(t, 1, tunnels.Load())
		echo(t, quick, "not stopped")
		other := open()
		defer closed(t, other)
		assert.EqualValues(t, 2, tunnels.Load(), "it takes another tunnel")
		echo(t, other, "quick")
		n, err := io.CopyN(io.Discard, slow, 3<<20)
		require.NoError(t, err)
		assert.EqualValues(t, 3<<20, n)
	})
}

func TestPortDialer_ReusesTunnelUntilIdle(t *testing.T) {
	var tunnels, ended atomic.Int32
	portServing(t, tunneling(t, func(n *node) {
		tunnels.Add(1)
		defer ended.Add(1)
		for {
			c, ok := n.accept()
			if !ok {
				return
			}
			n.data(c.data, fin, "hello")
			n.data(c.errors, fin, "")
		}
	}), func(t *testing.T, pods pods) {
		dialer := &stream.PortDialer{Target: pods}
		use := func() {
			conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
			require.NoError(t, err)
			response, err := io.ReadAll(conn)
			require.NoError(t, err)
			assert.Equal(t, "hello", string(response))
			require.NoError(t, conn.Close())
		}
		for range 3 {
			use()
			time.Sleep(29 * time.Second)
		}
		assert.EqualValues(t, 1, tunnels.Load())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.EqualValues(t, 1, ended.Load())
		use()
		assert.EqualValues(t, 2, tunnels.Load())
		require.NoError(t, dialer.Close())
		_, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestPortDialer_TunnelIsRetired(t *testing.T) {
	for name, script := range map[string]func(*node, accepted){
		"when its node refused one": func(n *node, c accepted) { n.data(c.errors, fin, "no such container") },
		"when its node goes away":   func(n *node, c accepted) { n.control(gone, 1, 0); n.data(c.errors, fin, "") },
		"when its node sends without an end": func(n *node, c accepted) {
			for range 100 {
				n.data(c.data, 0, strings.Repeat("x", 32768))
			}
		},
		"when it is cut": func(n *node, _ accepted) { _ = n.ws.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			var tunnels atomic.Int32
			portServing(t, tunneling(t, func(n *node) {
				if tunnels.Add(1) > 1 {
					c, _ := n.accept()
					n.data(c.data, fin, "well")
					n.data(c.errors, fin, "")
				} else if c, ok := n.accept(); ok {
					script(n, c)
				}
				n.rest()
			}), func(t *testing.T, pods pods) {
				dialer := &stream.PortDialer{Target: pods}
				defer closed(t, dialer)
				conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
				require.NoError(t, err)
				require.NoError(t, conn.Close())
				synctest.Wait()
				begin := time.Now()
				conn, err = dialer.DialContext(t.Context(), "tcp", "web-0:80")
				require.NoError(t, err)
				assert.Zero(t, time.Since(begin), "it is not tried")
				response, err := io.ReadAll(conn)
				require.NoError(t, err)
				assert.Equal(t, "well", string(response))
				assert.EqualValues(t, 2, tunnels.Load())
				require.NoError(t, conn.Close())
			})
		})
	}
}

func TestPortDialer_ContextEndsOnlyDialing(t *testing.T) {
	portServing(t, tunneling(t, func(n *node) {
		c, _ := n.accept()
		for { // and accepts nothing more
			f, ok := n.next()
			if !ok {
				return
			}
			if f.kind == 0 && f.stream == c.data {
				n.data(c.data, fin, string(f.payload))
				n.data(c.errors, fin, "")
			}
		}
	}), func(t *testing.T, pods pods) {
		dialer := &stream.PortDialer{Target: pods, MaxTunnels: 1}
		defer closed(t, dialer)
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := dialer.DialContext(ctx, "tcp", "web-0:80")
		require.NoError(t, err)
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = dialer.DialContext(ctx, "tcp", "web-0:80")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = io.WriteString(conn, "open")
		require.NoError(t, err)
		_, err = io.ReadAll(conn)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	})
}

func TestDialPort_WriteDeadline(t *testing.T) {
	portServing(t, tunneling(t, func(n *node) { n.accept(); time.Sleep(5 * time.Second) }), func(t *testing.T, pods pods) {
		conn, err := stream.DialPort(t.Context(), pods, "web-0", 80)
		require.NoError(t, err)
		require.NoError(t, conn.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := conn.Write(make([]byte, 10<<20))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		assert.Less(t, n, 10<<20)
		require.NoError(t, conn.SetWriteDeadline(time.Time{}))
		go func() { time.Sleep(time.Second); _ = conn.Close() }()
		_, err = conn.Write(make([]byte, 10<<20))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestForward_RetriesTemporaryAcceptErrors(t *testing.T) {
	portServing(t, tunneling(t, func(n *node) {
		c, _ := n.accept()
		n.data(c.data, fin, "hello")
		n.data(c.errors, fin, "")
		n.rest()
	}), func(t *testing.T, pods pods) {
		ours, theirs := net.Pipe()
		listener := &faulty{results: make(chan any, 3), closed: make(chan struct{})}
		listener.results <- syscall.EMFILE
		listener.results <- theirs
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- stream.ForwardPort(ctx, pods, "web-0", 80, listener) }()
		response, err := io.ReadAll(ours)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(response))
		_ = ours.Close()
		listener.results <- errors.New("out of order")
		require.ErrorContains(t, <-ended, "out of order")
		cancel(nil)
	})
}

// faulty is a listener that accepts what it is given.
type faulty struct {
	results chan any
	closed  chan struct{}
	once    sync.Once
}

func (f *faulty) Accept() (net.Conn, error) {
	select {
	case result := <-f.results:
		if err, ok := result.(error); ok {
			return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", err)}
		}
		return result.(net.Conn), nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *faulty) Addr() net.Addr { return &net.TCPAddr{} }

func (f *faulty) Close() error { f.once.Do(func() { close(f.closed) }); return nil }
