package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// Forward connects each client of listener to a port of a pod, or of a pod that a service or workload selects, until ctx
// ends: see [PortDialer.Forward], which can report single connections that fail.
func Forward[P Port](ctx context.Context, target Target, name string, port P, listener net.Listener) error {
	d := &PortDialer{Target: target}
	defer func() { _ = d.Close() }()
	return d.Forward(ctx, net.JoinHostPort(name, fmt.Sprint(port)), listener)
}

// Forward connects each client of listener to address, which is as in DialContext, until ctx ends. Each client has a
// connection of its own, dialed when the client comes: a pod that dies breaks the connections to it, and later clients
// reach another. A client is never reconnected.
//
// A client whose connection cannot be opened or breaks is reset rather than closed, so that it does not take this for a
// proper end, and Failed is called with the reason. A half-close is passed on in both directions, except to servers before
// Kubernetes 1.30: there a client that has half-closed is reset when the pod has sent nothing for 30 seconds.
//
// Forward returns when ctx ends, with its error; before that when listener fails, or at once if no pod can be reached. It
// then has closed listener and cut all clients.
func (d *PortDialer) Forward(ctx context.Context, address string, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	var clients sync.WaitGroup
	defer func() {
		cancel()
		stop()
		_ = listener.Close()
		clients.Wait()
	}()
	if err := d.reach(ctx, address); err != nil {
		return err
	}
	for wait := time.Duration(0); ; {
		client, err := listener.Accept()
		switch {
		case err == nil:
			wait = 0
			clients.Go(func() { d.serve(ctx, address, client) })
		case ctx.Err() != nil:
			return retry.ContextError(ctx)
		case !temporary(err):
			return fmt.Errorf("forward to %s: %w", address, err)
		default:
			// No more files, for one: net/http waits likewise.
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			_ = retry.Sleep(ctx, wait) // where ctx has ended, Accept fails
		}
	}
}

func temporary(err error) bool {
	var tells interface{ Temporary() bool }
	return errors.As(err, &tells) && tells.Temporary()
}

// serve serves one client.
func (d *PortDialer) serve(ctx context.Context, address string, client net.Conn) {
	err := d.join(ctx, address, client)
	if err != nil {
		cut(client)
	}
	_ = client.Close()
	if err != nil && ctx.Err() == nil && d.Failed != nil {
		d.Failed(client.RemoteAddr(), err)
	}
}

// cut closes a connection so that its peer does not take it for a proper end.
func cut(client net.Conn) {
	if tcp, ok := client.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = client.Close()
}

// join copies between the client and a connection of its own until the pod has sent all.
func (d *PortDialer) join(ctx context.Context, address string, client net.Conn) error {
	remote, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		cut(client)
		_ = remote.Close()
	})
	defer stop()
	var broken error // the client's own
	sent := make(chan struct{})
	pod := &idleConn{Conn: remote}
	go func() {
		defer close(sent)
		readErr, writeErr := pump(remote, client)
		broken = readErr
		switch {
		case readErr != nil:
			_ = remote.Close()
		case writeErr == nil && closeWrite(remote) != nil:
			pod.limit()
		}
	}()
	err, writeErr := pump(client, pod)
	_ = remote.Close()
	if err != nil || writeErr != nil {
		_ = client.SetReadDeadline(time.Unix(1, 0)) // ends the other direction
		<-sent
		if broken != nil && errors.Is(err, net.ErrClosed) {
			return broken
		}
		return errors.Join(err, writeErr)
	}
	// A client that is still sending would lose the end of the answer if its connection were closed now.
	_ = closeWrite(client)
	_ = client.SetReadDeadline(time.Now().Add(closeTimeout))
	<-sent
	_, _ = pump(nowhere{}, client)
	return nil
}

// closeWrite closes a connection for writing alone.
func closeWrite(conn net.Conn) error {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// halfOpenTimeout is how long a connection that cannot be closed in one direction may be silent in the other.
const halfOpenTimeout = 30 * time.Second

// idleConn is a connection whose silence can be limited.
type idleConn struct {
	net.Conn
	limited atomic.Bool
}

func (c *idleConn) limit() {
	c.limited.Store(true)
	_ = c.SetReadDeadline(time.Now().Add(halfOpenTimeout)) // where that fails, reading does
}

func (c *idleConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.limited.Load() {
		_ = c.SetReadDeadline(time.Now().Add(halfOpenTimeout))
	}
	return n, err
}

// nowhere discards what is written.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
