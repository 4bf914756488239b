package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/gorilla/websocket"
)

// linger is how long a server may take to hang up after it has told how the command ended.
const linger = 5 * time.Second

// errStdinOpen says what v4 lacks.
var errStdinOpen = errors.New("the server speaks " + protocolV4 + " only, as Kubernetes before 1.30, and cannot tell a command " +
	"that its input has ended: for a command that ends by itself use Cmd.StdinPipe and leave the pipe open")

// session is a command's streams over one socket.
type session struct {
	ctx    context.Context
	pod    podRef
	socket *socket
	output output
	stdin  io.Reader             // may be nil
	resize <-chan Size           // may be nil
	writes sync.Mutex            // gorilla allows one writer
	taking atomic.Bool           // the connection is taking a message
	failed atomic.Pointer[error] // the first of our own reasons to end it
}

// run carries the streams until the command has ended. The goroutine that reads stdin is left to itself where stdin
// makes it wait.
func (s *session) run() error {
	var helpers sync.WaitGroup
	helpers.Go(s.socket.beat)
	if s.resize != nil {
		helpers.Go(s.sendSizes)
	}
	if s.stdin != nil {
		go s.sendStdin()
	}
	err := s.receive()
	s.socket.close()
	helpers.Wait()
	return s.outcome(err)
}

// receive reads until the connection ends, which it does when all is told.
func (s *session) receive() error {
	var hangUp *time.Timer
	for {
		kind, message, err := s.socket.NextReader()
		if errors.Is(err, errSilent) && s.taking.Load() {
			return fmt.Errorf("%w; input was under way: a command that leaves it unread for so long keeps the server from answering", err)
		}
		if err != nil {
			return err
		}
		if kind != websocket.BinaryMessage {
			return fmt.Errorf("the server broke the protocol %s: it sent text", s.socket.Subprotocol())
		}
		if err := s.output.take(message); err != nil {
			return err
		}
		if s.output.status.reached && hangUp == nil {
			hangUp = time.AfterFunc(linger, s.socket.close)
			defer hangUp.Stop()
		}
	}
}

// outcome is what err, which ended receive, means. That the connection ended is no news where the server has told how
// the command ended; where it has not, what was read may not be all.
func (s *session) outcome(err error) error {
	var failed *writeError
	if errors.As(err, &failed) {
		if errors.Is(err, io.ErrClosedPipe) {
			return retry.WithContextError(s.ctx, err) // whose end has closed the pipe
		}
		return err
	}
	if s.output.status.reached {
		return s.output.status.err()
	}
	if failed := s.failed.Load(); failed != nil {
		return *failed
	}
	if s.ctx.Err() != nil {
		return retry.WithContextError(s.ctx, err)
	}
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		closed.Text = sanitize.Text(closed.Text, maxName)
	}
	if closed != nil || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
	return fmt.Errorf("the connection broke before the server told how the command ended: %w", err)
}

// fail ends the session for a reason of ours.
func (s *session) fail(err error) {
	s.failed.CompareAndSwap(nil, &err)
	s.socket.close()
}

// send writes one message, whose first byte is its channel.
func (s *session) send(message []byte) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	s.taking.Store(true)
	defer s.taking.Store(false)
	return s.socket.WriteMessage(websocket.BinaryMessage, message)
}

// sendStdin sends what stdin gives, and then its end. That the server does not take it is no failure: the command may
// have ended without reading it all.
func (s *session) sendStdin() {
	message := make([]byte, 1+messageSize)
	message[0] = channelStdin
	for {
		n, err := s.stdin.Read(message[1:])
		if n > 0 && s.send(message[:1+n]) != nil {
			return
		}
		switch {
		case err == io.EOF && s.socket.Subprotocol() == protocolV5:
			_ = s.send([]byte{channelClose, channelStdin})
			return
		case err == io.EOF:
			s.fail(errStdinOpen)
			return
		case err != nil:
			s.fail(fmt.Errorf("read stdin: %w", err))
			return
		}
	}
}

// sendSizes tells of every new size of the terminal.
func (s *session) sendSizes() {
	for {
		select {
		case <-s.socket.closed:
			return
		case size, open := <-s.resize:
			if !open {
				return
			}
			text, err := json.Marshal(size)
			if err != nil || s.send(append([]byte{channelResize}, text...)) != nil {
				return
			}
		}
	}
}
