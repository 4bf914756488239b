package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// Forward hands each connection that comes in at listener on to a port of a pod, or of what a service or a workload
// chooses, until ctx ends: see [PortDialer.Forward], which can tell of single connections that fail.
func Forward[P Port](ctx context.Context, target Target, name string, port P, listener net.Listener) error {
	d := &PortDialer{Target: target}
	defer func() { _ = d.Close() }()
	return d.Forward(ctx, net.JoinHostPort(name, fmt.Sprint(port)), listener)
}

// Forward hands each connection that comes in at listener on to address, which is as that of DialContext. A pod that
// dies costs the connections to it; the next ones go to another. Forward closes listener and returns when ctx ends,
// with its error; before that, where listener fails; or at once, where no pod can be reached. Its connections are cut
// when it returns.
//
// A connection that breaks off is reset on this side as well, so that its client does not take it for a proper end.
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

// join copies between the client and a connection of its own until the pod has said its last.
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
	go func() {
		defer close(sent)
		readErr, writeErr := pump(remote, client)
		broken = readErr
		switch {
		case readErr != nil:
			_ = remote.Close()
		case writeErr == nil:
			shutDown(remote)
		}
	}()
	err, writeErr := pump(client, remote)
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
	shutDown(client)
	_ = client.SetReadDeadline(time.Now().Add(closeTimeout))
	<-sent
	_, _ = pump(nowhere{}, client)
	return nil
}

// shutDown closes a connection for writing. One that cannot do that ends when the other side has been silent for a
// while.
func shutDown(conn net.Conn) {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		_ = conn.SetReadDeadline(time.Now().Add(halfOpenWait))
	}
}

// halfOpenWait is how long a connection that cannot be closed in one direction stays open in the other.
const halfOpenWait = 30 * time.Second

// nowhere is where what nobody wants goes.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
