package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/stream/internal/portconn"
	"github.com/anykind/anykind/stream/internal/spdy"
	"github.com/anykind/anykind/transport"
	"github.com/gorilla/websocket"
)

// tunnelProtocol is SPDY in WebSocket messages: https://kep.k8s.io/4006.
const tunnelProtocol = "SPDY/3.1+portforward.k8s.io"

// tunnel carries connections to one pod's ports over one WebSocket. It is safe for concurrent use.
type tunnel struct {
	*spdy.Session
	pod     string
	local   net.Addr
	backlog *portconn.Backlog
}

// dialTunnel opens a tunnel to the pod at path. ctx ends the dialing alone. changed is called, without locks, when a
// connection was closed and when the tunnel ended.
func dialTunnel(ctx context.Context, conn *transport.Conn, path, pod string, changed func()) (*tunnel, error) {
	opened, err := dial(ctx, conn, path+"/portforward", nil, tunnelProtocol)
	if err != nil {
		return nil, err
	}
	if !opened.release() {
		opened.close()
		return nil, retry.ContextError(ctx)
	}
	t := &tunnel{pod: pod, local: opened.LocalAddr(), backlog: portconn.NewBacklog()}
	t.Session = spdy.NewSession(&messageConn{socket: opened}, spdy.Options{
		OnChange: changed,
		Broken:   func(err error) error { return portconn.BrokenError(pod, err) },
	})
	go opened.beat()
	return t, nil
}

// open opens a connection to a port: see [spdy.Session.Open].
func (t *tunnel) open(ctx context.Context, port uint16) (*portconn.Conn, error) {
	conn := portconn.New(portconn.Addr{Pod: t.pod, Port: port}, t.local, t.backlog)
	pair, err := t.Open(ctx, port, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	conn.SetCarrier(pair)
	return conn, nil
}

// messageConn sends and receives binary messages over a socket. It implements [spdy.Conn].
type messageConn struct {
	socket  *socket
	message io.Reader // the one that is being read
}

// next begins with the next message.
func (c *messageConn) next() (io.Reader, error) {
	kind, message, err := c.socket.NextReader()
	if err == nil && kind != websocket.BinaryMessage {
		err = errors.New("the server sent text, not bytes")
	}
	if err != nil {
		return nil, err
	}
	return message, nil
}

// Read reads the bytes of message after message.
func (c *messageConn) Read(p []byte) (int, error) {
	for {
		if c.message == nil {
			message, err := c.next()
			if err != nil {
				return 0, err
			}
			c.message = message
		}
		n, err := c.message.Read(p)
		if err == io.EOF {
			c.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (c *messageConn) WriteMessage(p []byte) error {
	return c.socket.WriteMessage(websocket.BinaryMessage, p)
}

func (c *messageConn) WriteClose() error {
	farewell := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	return c.socket.WriteControl(websocket.CloseMessage, farewell, time.Time{})
}

func (c *messageConn) Close() { c.socket.close() }
