package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/anykind/anykind/transport"
	"github.com/gorilla/websocket"
)

// The legacy protocol, of API servers before 1.30: a WebSocket for each connection, whose messages begin with the
// number of a channel. The first two bytes of each channel are the port.
const (
	legacyPortProtocol = "v4.channel.k8s.io"
	legacyData         = 0
	legacyError        = 1
)

// legacyConn carries a connection over channels.
type legacyConn struct {
	*sender
	conn   *portConn
	unread *backlog
	prefix [2]int // how much of the port has come on each channel
}

// dialLegacy opens a connection to a port of the pod at path. ctx ends the dialing alone.
func dialLegacy(ctx context.Context, conn *transport.Conn, path string, to portAddr) (*portConn, error) {
	query := url.Values{"ports": {fmt.Sprint(to.port)}}
	opened, err := dial(ctx, conn, path+"/portforward", query, legacyPortProtocol)
	if err != nil {
		return nil, err
	}
	if !opened.release() {
		opened.close()
		return nil, ended(ctx, ctx.Err())
	}
	c := &legacyConn{unread: newBacklog()}
	c.conn = newPortConn(to, opened.LocalAddr(), c.unread)
	c.conn.carrier = c
	c.sender = newSender(opened, func(err error) { c.conn.fail(brokenTunnel(to.pod, err)) })
	go opened.beat()
	go c.run(nil, nil)
	go c.receive()
	return c.conn, nil
}

// receive reads messages until the socket ends.
func (c *legacyConn) receive() {
	in := &received{socket: c.socket}
	scratch := make([]byte, messageSize)
	for {
		err := in.next()
		if err == nil {
			err = c.handle(in.message, scratch)
		}
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			// The node closes the socket when it is through, and that alone in this way.
			c.conn.finished()
			c.conn.judge()
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// handle takes one message.
func (c *legacyConn) handle(message io.Reader, scratch []byte) error {
	if _, err := io.ReadFull(message, scratch[:1]); err != nil {
		return errors.New("the server sent a message without a channel")
	}
	channel := scratch[0]
	if channel > legacyError {
		return fmt.Errorf("the server sent a message on channel %d, which there is not", channel)
	}
	for {
		if channel == legacyData {
			c.conn.admits(c.done)
		}
		n, err := message.Read(scratch)
		p, portErr := c.skipPort(channel, scratch[:n])
		switch {
		case portErr != nil:
			return portErr
		case channel == legacyError:
			c.conn.told(p)
		default:
			c.conn.received(p)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// skipPort cuts off the port with which a channel begins.
func (c *legacyConn) skipPort(channel byte, p []byte) ([]byte, error) {
	want := binary.LittleEndian.AppendUint16(nil, c.conn.remote.port)
	for len(p) > 0 && c.prefix[channel] < len(want) {
		if p[0] != want[c.prefix[channel]] {
			return nil, errors.New("the server forwards another port than the one that was asked for")
		}
		c.prefix[channel]++
		p = p[1:]
	}
	return p, nil
}

// send implements carrier.
func (c *legacyConn) send(p []byte, gone, late <-chan struct{}) error {
	return c.put(gone, late, func(b []byte) []byte { return append(append(b, legacyData), p...) })
}

// finish implements carrier.
func (c *legacyConn) finish(<-chan struct{}) error {
	return errors.New("the server speaks " + legacyPortProtocol + " only, as Kubernetes before 1.30, " +
		"and that cannot close one direction alone: close the connection instead")
}

// taken implements carrier.
func (c *legacyConn) taken(bytes int) { c.unread.grown(-bytes) }

// leave implements carrier.
func (c *legacyConn) leave(unread int) {
	c.unread.grown(-unread)
	c.goodbye()
}
