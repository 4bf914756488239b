package stream

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// queuedMessages is how many messages may wait to be sent over a socket: enough to keep it busy.
const queuedMessages = 4

// goodbyeWait is how long a peer may take to hang up after it was said goodbye to.
const goodbyeWait = 2 * time.Second

// messages are buffers for one message each, with room for what its carrier puts before it.
var messages = sync.Pool{New: func() any { b := make([]byte, 0, messageSize+512); return &b }}

// sender is the one that writes to a socket, in a goroutine of its own, so that a writer can give up without breaking
// the message that it is at. Its messages are binary.
type sender struct {
	socket *socket
	queue  chan *[]byte // nil says goodbye
	done   chan struct{}
	over   sync.Once
	// fail hears once why nothing can be sent or received any more, when done is already closed.
	fail func(error)
}

func newSender(socket *socket, fail func(error)) *sender {
	return &sender{socket: socket, queue: make(chan *[]byte, queuedMessages), done: make(chan struct{}), fail: fail}
}

// end closes the socket.
func (s *sender) end(err error) {
	s.over.Do(func() {
		close(s.done)
		s.socket.close()
		s.fail(err)
	})
}

// put hands over a message that build appends to an empty buffer. It waits for its turn until gone or late is closed,
// and tells in the latter case of os.ErrDeadlineExceeded.
func (s *sender) put(gone, late <-chan struct{}, build func([]byte) []byte) error {
	message := messages.Get().(*[]byte)
	*message = build((*message)[:0])
	select {
	case s.queue <- message:
		return nil
	case <-s.done:
	case <-gone:
	case <-late:
		messages.Put(message)
		return os.ErrDeadlineExceeded
	}
	messages.Put(message)
	return net.ErrClosed
}

// putSoon is put for what must be sent, and whose sender must not wait.
func (s *sender) putSoon(message *[]byte) {
	select {
	case s.queue <- message:
	default:
		go func() {
			select {
			case s.queue <- message:
			case <-s.done:
			}
		}()
	}
}

// goodbye closes the socket after all that was put has been sent, and the peer has closed its side or taken too long.
func (s *sender) goodbye() {
	s.putSoon(nil)
	time.AfterFunc(goodbyeWait, func() { s.end(net.ErrClosed) })
}

// run sends until the end. Each tick, where there are some, calls beat.
func (s *sender) run(ticks <-chan time.Time, beat func() *[]byte) {
	for {
		var message *[]byte
		select {
		case message = <-s.queue:
		case <-ticks:
			if message = beat(); message == nil {
				continue
			}
		case <-s.done:
			return
		}
		var err error
		if message == nil {
			err = s.socket.WriteControl(websocket.CloseMessage,
				websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Time{})
		} else {
			err = s.socket.WriteMessage(websocket.BinaryMessage, *message)
			messages.Put(message)
		}
		if err != nil {
			// The reader may have more to read, and then finds out by itself.
			time.AfterFunc(goodbyeWait, func() { s.end(err) })
			return
		}
	}
}

// received reads a socket's binary messages one after the other.
type received struct {
	socket  *socket
	message io.Reader
}

// next begins with the next message.
func (r *received) next() error {
	kind, message, err := r.socket.NextReader()
	if err == nil && kind != websocket.BinaryMessage {
		err = errors.New("the server sent text, not bytes")
	}
	r.message = message
	return err
}

// Read reads on from message to message.
func (r *received) Read(p []byte) (int, error) {
	for {
		if r.message == nil {
			if err := r.next(); err != nil {
				r.message = nil
				return 0, err
			}
		}
		n, err := r.message.Read(p)
		if err == io.EOF {
			r.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}
