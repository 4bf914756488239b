package stream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/memconn"
	"github.com/anykind/anykind/stream"
)

// stalling is a node that accepts the first connection and then reads nothing, though it lives: the program in the pod
// does not read.
func stalling(n *node) {
	n.accept()
	for n.ws.WriteMessage(websocket.BinaryMessage, []byte("\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01")) == nil {
		time.Sleep(time.Second) // between responses to pings
	}
}

// fill writes until the connection is closed.
func fill(conn io.Writer) {
	for {
		if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
			return
		}
	}
}

func TestPortDialer_DialContextEndsOnFullQueue(t *testing.T) {
	portServing(t, tunneling(t, stalling), func(t *testing.T, pods pods) {
		dialer := &stream.PortDialer{Target: pods, MaxTunnels: 1}
		defer closed(t, dialer)
		conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
		require.NoError(t, err)
		go fill(conn)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err = dialer.DialContext(ctx, "tcp", "web-0:80")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 500*time.Millisecond, time.Since(begin))
	})
}

func TestForward_EndsOnFullQueue(t *testing.T) {
	portServing(t, tunneling(t, stalling), func(t *testing.T, pods pods) {
		dialer := &stream.PortDialer{Target: pods, MaxTunnels: 1}
		defer closed(t, dialer)
		listener := memconn.Listen(memconn.Fault{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- dialer.Forward(ctx, "web-0:80", listener) }()
		for range 3 {
			client, err := listener.Dial(t.Context(), "", "")
			require.NoError(t, err)
			defer closed(t, client)
			go fill(client)
			synctest.Wait()
		}
		begin := time.Now()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		assert.Zero(t, time.Since(begin))
	})
}

func TestPortDialer_NewTunnelWhenOneHangs(t *testing.T) {
	var tunnels atomic.Int32
	portServing(t, tunneling(t, func(n *node) {
		if tunnels.Add(1) > 1 {
			n.each(func(id uint32, text string) { n.data(id, 0, text) })
			return
		}
		c, _ := n.accept()
		n.data(c.errors, fin, "")
		n.rest() // it responds to pings, and accepts no connection
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
		defer closed(t, conn)
		assert.Equal(t, 5*time.Second, time.Since(begin))
		echo(t, conn, "hello")
	})
}

func TestPortDialer_NewTunnelAfterGoAway(t *testing.T) {
	var tunnels atomic.Int32
	portServing(t, tunneling(t, func(n *node) {
		if tunnels.Add(1) > 1 {
			n.each(func(id uint32, text string) { n.data(id, 0, text) })
			return
		}
		c, _ := n.accept()
		for {
			f, ok := n.next()
			switch {
			case !ok:
				return
			case f.kind == syn:
				n.control(gone, c.data, 0) // it has not processed this one
			case f.kind == 0 && len(f.payload) > 0:
				n.data(f.stream, 0, string(f.payload))
			}
		}
	}), func(t *testing.T, pods pods) {
		dialer := &stream.PortDialer{Target: pods, MaxTunnels: 1}
		defer closed(t, dialer)
		before, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
		require.NoError(t, err)
		defer closed(t, before)
		begin := time.Now()
		after, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
		require.NoError(t, err)
		defer closed(t, after)
		assert.Zero(t, time.Since(begin))
		echo(t, before, "the first goes on")
		echo(t, after, "the second has a new tunnel")
	})
}

func TestPortDialer_NodeThatAcceptsNothing(t *testing.T) {
	portServing(t, tunneling(t, func(n *node) { n.rest() }), func(t *testing.T, pods pods) {
		begin := time.Now()
		_, err := stream.DialPort(t.Context(), pods, "web-0", 80)
		require.ErrorContains(t, err, "has not accepted the connection within 1m0s")
		assert.Equal(t, time.Minute, time.Since(begin))
	})
}

func TestPortDialer_ErrorTextIsSanitized(t *testing.T) {
	portServing(t, tunneling(t, func(n *node) {
		c, _ := n.accept()
		n.data(c.errors, fin, "\x1b[2Jconnection refused\r\n\x1b]0;title\a\x00 at the port")
		n.rest()
	}), func(t *testing.T, pods pods) {
		conn, err := stream.DialPort(t.Context(), pods, "web-0", 80)
		require.NoError(t, err)
		defer closed(t, conn)
		_, err = conn.Read(make([]byte, 1))
		require.ErrorContains(t, err, "connection refused")
		for _, r := range err.Error() {
			assert.GreaterOrEqual(t, r, ' ', "%q", err)
		}
	})
}

func TestPortDialer_ProtocolOfPodPort(t *testing.T) {
	const declaring = `{"metadata": {"name": "web-0"}, "spec": {"containers": [{"ports": [{"containerPort": 80, "protocol": %q}]}]}}`
	var reads atomic.Int32
	protocol := "UDP"
	streams := tunneling(t, func(n *node) { n.each(func(id uint32, text string) { n.data(id, 0, text) }) })
	portServing(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			streams(w, r)
			return
		}
		reads.Add(1)
		assert.Equal(t, "/api/v1/namespaces/shop/pods/web-0", r.URL.Path)
		_, _ = fmt.Fprintf(w, declaring, protocol)
	}, func(t *testing.T, pods pods) {
		dialer := &stream.PortDialer{Target: pods}
		defer closed(t, dialer)
		for range 2 {
			_, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
			require.EqualError(t, err, "dial web-0:80: port 80 of pod web-0 is UDP: only TCP can be forwarded")
		}
		assert.EqualValues(t, 1, reads.Load(), "a burst reads once")
		protocol = "TCP" // another pod of the same name
		time.Sleep(time.Second)
		for range 3 {
			conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
			require.NoError(t, err)
			echo(t, conn, "hello")
			require.NoError(t, conn.Close())
			time.Sleep(2 * time.Second)
		}
		assert.EqualValues(t, 2, reads.Load())
	})
}

func TestPortDialer_PodThatIsNotRead(t *testing.T) {
	streams := tunneling(t, func(n *node) { n.each(func(id uint32, text string) { n.data(id, 0, text) }) })
	portServing(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			streams(w, r)
			return
		}
		<-r.Context().Done() // it takes too long
	}, func(t *testing.T, pods pods) {
		dialer := &stream.PortDialer{Target: pods}
		defer closed(t, dialer)
		for _, took := range []time.Duration{5 * time.Second, 0} {
			begin := time.Now()
			conn, err := dialer.DialContext(t.Context(), "tcp", "web-0:80")
			require.NoError(t, err)
			assert.Equal(t, took, time.Since(begin))
			echo(t, conn, "hello")
			require.NoError(t, conn.Close())
		}
	})
}

func TestDialPort_NumberOutOfRange(t *testing.T) {
	for _, port := range []int{-1, 0, 65536} {
		_, err := stream.DialPort(t.Context(), pods{}, "web-0", port)
		require.ErrorContains(t, err, "is out of range: ports are numbers from 1 to 65535")
	}
}
