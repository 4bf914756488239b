package spdy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeConn is a connection whose other end is the test.
type fakeConn struct {
	*io.PipeReader                // what the node sends
	node           *io.PipeWriter // sends it
	written        chan []byte    // messages that were written; full, it makes the writer wait
	closed         chan struct{}
	once           sync.Once
}

func newFakeConn(room int) *fakeConn {
	r, w := io.Pipe()
	return &fakeConn{PipeReader: r, node: w, written: make(chan []byte, room), closed: make(chan struct{})}
}

func (w *fakeConn) WriteMessage(p []byte) error {
	select {
	case w.written <- bytes.Clone(p):
		return nil
	case <-w.closed:
		return net.ErrClosed
	}
}

func (w *fakeConn) WriteClose() error { return w.node.Close() }

func (w *fakeConn) Close() {
	w.once.Do(func() {
		close(w.closed)
		_ = w.CloseWithError(net.ErrClosed)
		_ = w.node.CloseWithError(net.ErrClosed)
	})
}

// send sends frames as the node.
func (w *fakeConn) send(frames ...[]byte) { _, _ = w.node.Write(bytes.Join(frames, nil)) }

// frames returns the frames that were written since the last call, as text.
func (w *fakeConn) frames(t *testing.T) (frames []string) {
	synctest.Wait()
	var all []byte
	for len(w.written) > 0 {
		all = append(all, <-w.written...)
		synctest.Wait()
	}
	reader := &frameReader{in: bytes.NewReader(all)}
	for {
		f, err := reader.next()
		if err == io.EOF { //nolint:errorlint // itself
			return frames
		}
		require.NoError(t, err)
		rest := make([]byte, f.length)
		_, err = io.ReadFull(reader.in, rest)
		require.NoError(t, err)
		switch f.kind {
		case typeData:
			frames = append(frames, fmt.Sprintf("data %d %d bytes fin=%d", f.stream, f.length, f.flags))
		case typeSynStream:
			frames = append(frames, fmt.Sprintf("open %d", f.stream))
		case typeRstStream:
			frames = append(frames, fmt.Sprintf("reset %d %d", f.stream, f.status))
		case typePing:
			frames = append(frames, fmt.Sprintf("ping %d", f.stream))
		default:
			frames = append(frames, fmt.Sprintf("type %d", f.kind))
		}
	}
}

// receiver records what it gets.
type receiver struct {
	mu     sync.Mutex
	got    bytes.Buffer
	text   string
	events []string
	broken error
}

func (r *receiver) Behind() bool             { return false }
func (r *receiver) WaitRoom(<-chan struct{}) {}

func (r *receiver) note(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

func (r *receiver) Receive(p []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.got.Write(p)
	return true
}

func (r *receiver) ReceiveError(p []byte) { r.text += string(p) }
func (r *receiver) EndData()              { r.note("end of data") }
func (r *receiver) EndErrors()            { r.note("end of errors") }
func (r *receiver) Reset(uint32)          { r.note("reset") }

func (r *receiver) Break(err error) {
	r.note("broken")
	r.broken = err
}

var errBroken = errors.New("broken off")

// inSession runs a test with a session in a bubble. Messages beyond room make the writer wait.
func inSession(t *testing.T, room int, test func(t *testing.T, s *Session, w *fakeConn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newFakeConn(room)
		s := NewSession(w, Options{OnChange: func() {}, BreakError: func(err error) error { return fmt.Errorf("%w: %w", errBroken, err) }})
		defer s.Close(net.ErrClosed)
		test(t, s, w)
	})
}

// accept opens a pair whose first stream has a number, and has the node accept it.
func accept(t *testing.T, s *Session, w *fakeConn, first uint32) (*Pair, *receiver) {
	t.Helper()
	var to receiver
	opened := make(chan *Pair, 1)
	go func() {
		pair, err := s.Open(t.Context(), 80, &to)
		assert.NoError(t, err)
		opened <- pair
	}()
	w.frames(t)
	w.send(appendControl(nil, typeSynReply, first), appendControl(nil, typeSynReply, first+2))
	return <-opened, &to
}

func TestSession_FloodOfPingsIsBounded(t *testing.T) {
	inSession(t, 1, func(t *testing.T, s *Session, w *fakeConn) {
		before := runtime.NumGoroutine()
		var flood []byte
		for range 1000 {
			flood = appendControl(flood, typePing, 2)
		}
		flood = appendControl(flood, typePing, 4)
		for range 200 { // 2.4 MB, while nobody reads what is written
			w.send(flood)
		}
		synctest.Wait()
		assert.LessOrEqual(t, runtime.NumGoroutine(), before+1)
		assert.LessOrEqual(t, cap(s.rejections)+cap(s.data)+cap(s.endings), 4*maxQueued)
		frames := w.frames(t)
		assert.LessOrEqual(t, len(frames), 4)
		assert.Equal(t, "ping 4", frames[len(frames)-1], "the last ping gets its response")
	})
}

func TestSession_FloodOfStreamsEndsIt(t *testing.T) {
	inSession(t, 0, func(t *testing.T, s *Session, w *fakeConn) {
		for i := range uint32(2*maxRejections + 1) {
			w.send(appendControl(nil, typeSynStream, 2*i+2, 0))
		}
		_, err := s.Open(t.Context(), 80, &receiver{})
		require.ErrorIs(t, err, errBroken)
		require.ErrorContains(t, err, "opens streams and reads no responses")
	})
}

func TestSession_OpenIsWithdrawn(t *testing.T) {
	inSession(t, 0, func(t *testing.T, s *Session, w *fakeConn) {
		first := make(chan error, 1)
		go func() {
			_, err := s.Open(t.Context(), 80, &receiver{})
			first <- err
		}()
		synctest.Wait() // its frames are being written
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := s.Open(ctx, 80, &receiver{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 500*time.Millisecond, time.Since(begin))
		s.mu.Lock()
		assert.Empty(t, s.openings)
		assert.Equal(t, 1, s.live)
		s.mu.Unlock()
		message := <-w.written
		assert.Equal(t, 2, bytes.Count(message, []byte("streamtype")), "one pair was opened")
		s.Close(net.ErrClosed)
		require.ErrorIs(t, <-first, errBroken)
	})
}

func TestSession_OpenEndsWithContext(t *testing.T) {
	inSession(t, 10, func(t *testing.T, s *Session, w *fakeConn) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("changed my mind")
		time.AfterFunc(time.Second, func() { cancel(cause) })
		_, err := s.Open(ctx, 80, &receiver{})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, cause)
		assert.Equal(t, []string{"open 1", "data 1 0 bytes fin=1", "open 3", "reset 3 5"}, w.frames(t))
		_, err = s.Open(ctx, 80, &receiver{})
		require.ErrorIs(t, err, cause)
		assert.Empty(t, w.frames(t))
	})
}

func TestSession_OpenTimesOut(t *testing.T) {
	inSession(t, 100, func(t *testing.T, s *Session, w *fakeConn) {
		begin := time.Now()
		_, err := s.Open(t.Context(), 80, &receiver{})
		require.ErrorIs(t, err, ErrNotAccepted)
		assert.Equal(t, time.Minute, time.Since(begin), "the first of a session")
	})
	inSession(t, 100, func(t *testing.T, s *Session, w *fakeConn) {
		pair, to := accept(t, s, w, 1)
		begin := time.Now()
		_, err := s.Open(t.Context(), 80, &receiver{})
		require.ErrorIs(t, err, ErrRetired)
		assert.Equal(t, 5*time.Second, time.Since(begin), "a later one")
		assert.False(t, s.Load().Accepting)
		w.send(appendData(nil, pair.dataID, flagFin, []byte("goes on")))
		synctest.Wait()
		assert.Equal(t, "goes on", to.got.String())
	})
}

func TestSession_GoAwayExcludesLaterStreams(t *testing.T) {
	inSession(t, 100, func(t *testing.T, s *Session, w *fakeConn) {
		_, kept := accept(t, s, w, 1)
		dropped, lost := accept(t, s, w, 5)
		waiting := make(chan error, 1)
		go func() {
			_, err := s.Open(t.Context(), 80, &receiver{})
			waiting <- err
		}()
		w.frames(t)
		w.send(appendControl(nil, typeGoAway, 3, 0))
		require.ErrorIs(t, <-waiting, ErrRetired)
		_, err := s.Open(t.Context(), 80, &receiver{})
		require.ErrorIs(t, err, ErrRetired)
		w.send(appendData(nil, 3, 0, []byte("goes on")))
		synctest.Wait()
		assert.Equal(t, "goes on", kept.got.String())
		assert.Empty(t, kept.events)
		assert.Equal(t, []string{"broken"}, lost.events)
		require.ErrorIs(t, lost.broken, errGoAway)
		dropped.Close()
	})
}

func TestPair_ClosesAfterItsData(t *testing.T) {
	inSession(t, 0, func(t *testing.T, s *Session, w *fakeConn) {
		opened := make(chan *Pair, 1)
		go func() {
			pair, err := s.Open(t.Context(), 80, &receiver{})
			assert.NoError(t, err)
			opened <- pair
		}()
		<-w.written
		w.send(appendControl(nil, typeSynReply, 1), appendControl(nil, typeSynReply, 3))
		pair := <-opened
		for range 2 {
			_, err := pair.Send([]byte("data"), nil, nil)
			require.NoError(t, err)
		}
		require.NoError(t, pair.CloseWrite(), "it does not wait")
		_, err := pair.Send([]byte("late"), nil, nil)
		require.ErrorIs(t, err, net.ErrClosed)
		pair.Close()
		w.send(appendControl(nil, typePing, 2))
		synctest.Wait()
		var all []byte
		for range 4 {
			all = append(all, <-w.written...)
		}
		control := appendControl(nil, typePing, 2)
		require.Contains(t, string(all), string(control))
		all = bytes.Replace(all, control, nil, 1) // wherever it is
		want := appendData(appendData(nil, 3, 0, []byte("data")), 3, 0, []byte("data"))
		want = appendControl(appendData(want, 3, flagFin, nil), typeRstStream, 3, statusCancel)
		assert.Equal(t, want, all)
	})
}

func TestPair_SendGivesUp(t *testing.T) {
	inSession(t, 10, func(t *testing.T, s *Session, w *fakeConn) {
		pair, _ := accept(t, s, w, 1)
		for n := 0; n < cap(w.written)+maxQueued+1; n++ { // the fakeConn, the queue, and one that is being written
			_, err := pair.Send([]byte("data"), nil, nil)
			require.NoError(t, err)
			synctest.Wait()
		}
		late := make(chan struct{})
		gone := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(late) })
		_, err := pair.Send([]byte("data"), nil, late)
		require.ErrorContains(t, err, "timeout")
		time.AfterFunc(time.Second, func() { close(gone) })
		_, err = pair.Send([]byte("data"), gone, nil)
		require.ErrorIs(t, err, net.ErrClosed)
		time.AfterFunc(time.Second, func() { s.Close(io.ErrUnexpectedEOF) })
		_, err = pair.Send([]byte("data"), nil, nil)
		require.ErrorIs(t, err, errBroken)
	})
}

func TestSession_UnresponsiveNodeEndsIt(t *testing.T) {
	inSession(t, 100, func(t *testing.T, s *Session, w *fakeConn) {
		_, to := accept(t, s, w, 1)
		w.send(appendControl(nil, typePing, 1)) // it responds to pings
		begin := time.Now()
		<-s.done
		synctest.Wait()
		assert.LessOrEqual(t, time.Since(begin), 61*time.Second)
		require.ErrorIs(t, to.broken, errUnresponsive)
	})
}

func TestSession_RetiredClosesAfterLastPair(t *testing.T) {
	inSession(t, 100, func(t *testing.T, s *Session, w *fakeConn) {
		pair, _ := accept(t, s, w, 1)
		s.Retire()
		synctest.Wait()
		assert.False(t, isDone(s))
		w.send(appendData(nil, 1, flagFin, nil))
		synctest.Wait()
		pair.Close()
		synctest.Wait()
		assert.True(t, isDone(s), "the node had ended it")
	})
	inSession(t, 100, func(t *testing.T, s *Session, w *fakeConn) {
		pair, _ := accept(t, s, w, 1)
		s.Retire()
		pair.Close()
		synctest.Wait()
		assert.False(t, isDone(s), "the node has the time to end it")
		time.Sleep(closeTimeout)
		synctest.Wait()
		assert.True(t, isDone(s))
	})
}

func TestSession_HalfClosedPairsRetireIt(t *testing.T) {
	inSession(t, 1000, func(t *testing.T, s *Session, w *fakeConn) {
		_, _ = accept(t, s, w, 1)
		for i := range uint32(maxHalfClosed + 1) {
			assert.True(t, s.Load().Accepting)
			pair, _ := accept(t, s, w, 5+4*i)
			pair.Close()
		}
		assert.False(t, s.Load().Accepting)
		assert.LessOrEqual(t, len(s.pairs), 2*(maxHalfClosed+2))
	})
}

func isDone(s *Session) bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func TestSession_LastStreamNumberRetiresIt(t *testing.T) {
	inSession(t, 100, func(t *testing.T, s *Session, w *fakeConn) {
		s.mu.Lock()
		s.lastID = lastUsableStream - 8
		s.mu.Unlock()
		errs := make(chan error, 2)
		for range cap(errs) {
			go func() {
				_, err := s.Open(t.Context(), 80, &receiver{})
				errs <- err
			}()
		}
		synctest.Wait()
		w.send(appendControl(nil, typeSynReply, lastUsableStream-6), appendControl(nil, typeSynReply, lastUsableStream-4))
		require.NoError(t, <-errs)
		w.send(appendControl(nil, typeSynReply, lastUsableStream-2), appendControl(nil, typeSynReply, lastUsableStream))
		require.NoError(t, <-errs)
		_, err := s.Open(t.Context(), 80, &receiver{})
		require.ErrorIs(t, err, ErrRetired)
	})
}

// FuzzSession checks that any input from a node yields the bytes that it sent as data and an end, and no panic.
func FuzzSession(f *testing.F) {
	f.Add(appendData(nil, 3, 0, []byte("hello")))
	f.Add(appendData(appendData(nil, 3, flagFin, []byte("bye")), 1, flagFin, nil))
	f.Add(appendData(appendControl(nil, typeRstStream, 3, 5), 1, flagFin, []byte("refused")))
	f.Add(appendControl(appendControl(appendControl(nil, typePing, 1), typePing, 2), typeGoAway, 1, 0))
	f.Add(appendSynStream(appendControl(nil, typeSynReply, 3), 2, true, header{"a", "b"}))
	f.Fuzz(func(t *testing.T, sent []byte) {
		w := newFakeConn(0)
		s := newSession(w, Options{OnChange: func() {}, BreakError: func(err error) error { return err }})
		s.frames.in = bytes.NewReader(sent)
		var to receiver
		pair, _, err := s.enqueue(80, &to)
		require.NoError(t, err)
		s.appendDue(nil)
		s.read()
		assert.LessOrEqual(t, to.got.Len()+len(to.text), len(sent))
		assert.True(t, isDone(s))
		assert.NotEmpty(t, to.events)
		pair.Close()
		assert.Zero(t, s.live)
		assert.Empty(t, s.pairs)
	})
}
