package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/stream/internal/portconn"
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

const (
	// legacyQueue is how many messages may wait to be written.
	legacyQueue = 4
	// closeTimeout is how long a peer may take to hang up after this side has.
	closeTimeout = 2 * time.Second
)

// legacyBuffers are for one message each.
var legacyBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 1+messageSize); return &b }}

// legacyConn carries one connection over channels. It implements portconn.Carrier. Two goroutines serve it, one that reads
// and one that writes.
type legacyConn struct {
	messages *messageConn
	conn     *portconn.Conn
	port     uint16
	pod      string
	prefix   [2]int // how much of the port has come on each channel

	queue   chan *[]byte
	closing chan struct{} // closed by Close: what is queued is the last
	done    chan struct{} // closed at the end
	over    sync.Once
}

// dialLegacy opens a connection to a port of the pod at path. ctx ends the dialing alone.
func dialLegacy(ctx context.Context, conn *transport.Conn, path string, to portconn.Addr) (*legacyConn, error) {
	query := url.Values{"ports": {fmt.Sprint(to.Port)}}
	opened, err := dial(ctx, conn, path+"/portforward", query, legacyPortProtocol)
	if err != nil {
		return nil, err
	}
	if !opened.release() {
		opened.close()
		return nil, retry.ContextError(ctx)
	}
	c := newLegacyConn(&messageConn{socket: opened}, to, opened.LocalAddr())
	go opened.beat()
	go c.write()
	go c.receive()
	return c, nil
}

func newLegacyConn(messages *messageConn, to portconn.Addr, local net.Addr) *legacyConn {
	c := &legacyConn{
		messages: messages, conn: portconn.New(to, local, portconn.NewBacklog()), port: to.Port, pod: to.Pod,
		queue: make(chan *[]byte, legacyQueue), closing: make(chan struct{}), done: make(chan struct{}),
	}
	c.conn.SetCarrier(c)
	return c
}

// end ends the connection at once.
func (c *legacyConn) end(err error) {
	c.over.Do(func() {
		c.conn.Break(portconn.BrokenError(c.pod, err))
		close(c.done)
		c.messages.Close()
	})
}

// receive reads messages until the socket ends.
func (c *legacyConn) receive() {
	scratch := make([]byte, messageSize)
	for {
		message, err := c.messages.next()
		if err == nil {
			err = c.handle(message, scratch)
		}
		// The node closes the socket when it is through, and nothing else does so in this way.
		if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			if c.prefix == [2]int{2, 2} {
				c.conn.EndData()
				c.conn.EndErrors()
			} else {
				err = errors.New("the server has not sent the port on both channels")
			}
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
		if err != io.EOF {
			return err
		}
		return errors.New("the server sent a message without a channel")
	}
	channel := scratch[0]
	if channel > legacyError {
		return fmt.Errorf("the server sent a message on channel %d, which does not exist", channel)
	}
	for {
		if channel == legacyData {
			c.conn.WaitRoom(c.done)
		}
		n, err := message.Read(scratch)
		p, portErr := c.skipPort(channel, scratch[:n])
		switch {
		case portErr != nil:
			return portErr
		case channel == legacyError:
			c.conn.ReceiveError(p)
		default:
			c.conn.Receive(p)
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
	want := binary.LittleEndian.AppendUint16(nil, c.port)
	for len(p) > 0 && c.prefix[channel] < len(want) {
		if p[0] != want[c.prefix[channel]] {
			return nil, errors.New("the server forwards another port than the one that was requested")
		}
		c.prefix[channel]++
		p = p[1:]
	}
	return p, nil
}

// write writes what is queued until the end, or until all is written after Close.
func (c *legacyConn) write() {
	for {
		var message *[]byte
		select {
		case message = <-c.queue:
		case <-c.done:
			return
		case <-c.closing:
			select {
			case message = <-c.queue:
			default:
				_ = c.messages.WriteClose() // where it fails, the connection ends without it
				return
			}
		}
		err := c.messages.WriteMessage(*message)
		legacyBuffers.Put(message)
		if err != nil {
			// The peer may have said why before it closed the connection: the reader finds out by itself.
			time.AfterFunc(closeTimeout, func() { c.end(err) })
			return
		}
	}
}

// Send implements portconn.Carrier.
func (c *legacyConn) Send(p []byte, gone, late <-chan struct{}) (int, error) {
	p = p[:min(len(p), messageSize)]
	message := legacyBuffers.Get().(*[]byte)
	*message = append(append((*message)[:0], legacyData), p...)
	select {
	case c.queue <- message:
		return len(p), nil
	case <-late:
		legacyBuffers.Put(message)
		return 0, os.ErrDeadlineExceeded
	case <-c.done:
	case <-gone:
	}
	legacyBuffers.Put(message)
	return 0, net.ErrClosed
}

// CloseWrite implements portconn.Carrier.
func (c *legacyConn) CloseWrite() error {
	return errors.New("the server knows only the protocol " + legacyPortProtocol + ", as Kubernetes before 1.30, " +
		"which cannot close one direction alone: close the connection instead")
}

// Close implements portconn.Carrier.
func (c *legacyConn) Close() {
	close(c.closing)
	time.AfterFunc(closeTimeout, func() { c.end(net.ErrClosed) })
}
