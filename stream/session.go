package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/stream/internal/wsconn"
)

// Channels of exec and attach. The first byte of each message is its channel.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
	channelError  = 3 // carries a single Status: the exit status
	channelResize = 4
	channelClose  = 255 // followed by the channel to close
)

// hangUpTimeout limits the time for a server to close the connection after the exit status.
const hangUpTimeout = 5 * time.Second

// session is an exec or attach over a WebSocket. A goroutine reads messages and writes output; further goroutines send stdin,
// terminal sizes and pings.
type session struct {
	ctx     context.Context
	pod     podRef
	conn    *wsconn.Conn
	opts    ExecOptions
	channel [1]byte        // of the current message
	message io.Reader      // the message of the error channel being read by Read
	readErr error          // of Read
	status  *metav1.Status // nil until it has arrived
	writeMu sync.Mutex
	writing atomic.Bool
	failure atomic.Pointer[error] // the first local reason to end
}

func openSession(ctx context.Context, target Target, name, subresource string, opts ExecOptions) (*session, error) {
	pod, err := resolvePod(ctx, target, name, isRunning)
	if err != nil {
		return nil, err
	}
	conn, err := openContainer(ctx, target.Conn(), pod.path, opts.Container, func(container string) (*wsconn.Conn, error) {
		return dial(ctx, target.Conn(), pod.path+"/"+subresource, opts.query(container), protocolExec)
	})
	if err != nil {
		return nil, pod.wrap(name, err)
	}
	return &session{ctx: ctx, pod: pod, conn: conn, opts: opts}, nil
}

// run carries the streams until the command has ended. It does not wait for the goroutine reading stdin.
func (s *session) run() error {
	var senders sync.WaitGroup
	senders.Go(s.conn.KeepAlive)
	if s.opts.TTY && s.opts.Resize != nil {
		senders.Go(s.sendSizes)
	}
	if s.opts.Stdin != nil {
		go s.sendStdin()
	}
	err := s.receive()
	s.conn.Close()
	senders.Wait()
	return s.result(err)
}

// receive handles messages until the connection ends. The server closes it after the exit status.
func (s *session) receive() error {
	status, err := decodeStatus(s)
	if err != nil {
		return cmp.Or(s.readErr, err)
	}
	s.status = status
	hangUp := time.AfterFunc(hangUpTimeout, s.conn.Close)
	defer hangUp.Stop()
	_, err = io.Copy(io.Discard, s)
	return err
}

// Read reads the error channel. Messages of all remaining channels are handled meanwhile.
func (s *session) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		if s.message == nil {
			err = s.handleNext()
		} else if n, err = s.message.Read(p); err == io.EOF { //nolint:errorlint // itself: the message's end
			s.message = nil
			err = nil
		}
	}
	s.readErr = err
	return n, err
}

func (s *session) handleNext() error {
	message, err := s.conn.NextMessage()
	if errors.Is(err, wsconn.ErrUnresponsive) && s.writing.Load() {
		return fmt.Errorf("%w; input was under way: a command that leaves it unread for so long keeps the server from responding", err)
	}
	if err != nil {
		return err
	}
	return s.handle(message)
}

// handle reads a message, or leaves an error message to Read. A blocked writer stops reading, and thereby the server.
func (s *session) handle(message io.Reader) error {
	if _, err := io.ReadFull(message, s.channel[:]); err == io.EOF {
		return nil // servers greet with an empty message
	} else if err != nil {
		return err
	}
	switch s.channel[0] {
	case channelStdout:
		return s.copy("stdout", s.opts.Stdout, message)
	case channelStderr:
		return s.copy("stderr", s.opts.Stderr, message)
	case channelError:
		s.message = message
	}
	return nil
}

// copy copies a message to the caller's writer of a stream. Without a writer the next message discards it.
func (s *session) copy(stream string, to io.Writer, message io.Reader) error {
	if to == nil {
		return nil
	}
	readErr, writeErr := pump(to, message)
	if writeErr != nil {
		return &writeError{stream, writeErr}
	}
	return readErr
}

// writeError is a failure of the caller's own writer.
type writeError struct {
	stream string
	err    error
}

func (e *writeError) Error() string { return fmt.Sprintf("write %s: %v", e.stream, e.err) }
func (e *writeError) Unwrap() error { return e.err }

// result returns the session's result after err ended receive. An error of the caller's writer comes first, then the exit status
// (the end of the connection is irrelevant with it), then local reasons. Without an exit status output may be missing.
func (s *session) result(err error) error {
	if _, isLocal := errors.AsType[*writeError](err); isLocal {
		if errors.Is(err, io.ErrClosedPipe) {
			return retry.WithContextError(s.ctx, err) // the end of ctx has closed the pipe
		}
		return err
	}
	if s.status != nil {
		return exitError(s.status)
	}
	if failure := s.failure.Load(); failure != nil {
		return *failure
	}
	if s.ctx.Err() != nil {
		return retry.WithContextError(s.ctx, err)
	}
	return fmt.Errorf("the connection broke before the exit status arrived: %w", wsconn.EndError(err))
}

// fail ends the session for a local reason.
func (s *session) fail(err error) {
	s.failure.CompareAndSwap(nil, &err)
	s.conn.Close()
}

// send writes a message. Its first byte is its channel.
func (s *session) send(message []byte) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.writing.Store(true)
	defer s.writing.Store(false)
	return s.conn.WriteMessage(message)
}

// sendStdin sends stdin and closes its channel. A failed write is no error: the command may have ended without reading all.
func (s *session) sendStdin() {
	message := make([]byte, 1+wsconn.MaxMessage)
	message[0] = channelStdin
	for {
		n, err := s.opts.Stdin.Read(message[1:])
		if n > 0 && s.send(message[:1+n]) != nil {
			return
		}
		switch {
		case err == io.EOF:
			_ = s.send([]byte{channelClose, channelStdin})
			return
		case err != nil:
			s.fail(fmt.Errorf("read stdin: %w", err))
			return
		}
	}
}

func (s *session) sendSizes() {
	for {
		select {
		case <-s.conn.Done():
			return
		case size, open := <-s.opts.Resize:
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
