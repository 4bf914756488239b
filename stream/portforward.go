package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/stream/internal/wsconn"
)

// closeTimeout limits the time for a client to close its connection after the pod has.
const closeTimeout = 2 * time.Second

// ForwardPort connects each client of listener to a port of a pod, or of a pod of a service or workload, until ctx ends. See
// [PortDialer.Forward]: it can report the errors of single connections.
func ForwardPort[P Port](ctx context.Context, target Target, name string, port P, listener net.Listener) error {
	d := &PortDialer{Target: target}
	defer func() { _ = d.Close() }()
	return d.Forward(ctx, net.JoinHostPort(name, fmt.Sprint(port)), listener)
}

// Forward connects each client of listener to an address of DialContext until ctx ends. Each client has its own connection,
// dialed when the client connects. A dying pod breaks its connections, and later clients reach a new pod. A client is never
// reconnected.
//
// A client whose connection cannot be opened or breaks is reset rather than closed, to distinguish this from a regular end, and
// OnError is called. A half-close is passed on in both directions.
//
// Forward returns ctx's error when ctx ends. It returns earlier if listener fails, and at once if no pod can be reached. It then
// has closed listener and reset all clients.
func (d *PortDialer) Forward(ctx context.Context, address string, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	var clients sync.WaitGroup
	defer func() {
		cancel()
		_ = listener.Close()
		clients.Wait()
	}()
	name, port, err := splitAddress(address)
	if err == nil {
		err = d.checkPort(ctx, name, port)
	}
	if err != nil {
		return fmt.Errorf("forward to %s: %w", address, err)
	}
	for delay := time.Duration(0); ; {
		client, err := listener.Accept()
		switch {
		case err == nil:
			delay = 0
			clients.Go(func() { d.serve(ctx, name, port, client) })
		case ctx.Err() != nil:
			return retry.ContextError(ctx)
		case !isTemporary(err):
			return fmt.Errorf("forward to %s: %w", address, err)
		default:
			// Out of file descriptors, for instance: net/http waits in the same way.
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			_ = retry.Sleep(ctx, delay) // if ctx has ended, Accept fails
		}
	}
}

func isTemporary(err error) bool {
	var temporary interface{ Temporary() bool }
	return errors.As(err, &temporary) && temporary.Temporary()
}

func (d *PortDialer) serve(ctx context.Context, name, port string, client net.Conn) {
	err := d.connect(ctx, name, port, client)
	if err != nil {
		reset(client)
	}
	_ = client.Close()
	if err != nil && ctx.Err() == nil && d.OnError != nil {
		d.OnError(client.RemoteAddr(), err)
	}
}

// reset closes a connection with a reset: the peer can distinguish it from a regular end.
func reset(client net.Conn) {
	if tcp, ok := client.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = client.Close()
}

// connect dials a connection for a client and copies in both directions until the pod has sent everything.
func (d *PortDialer) connect(ctx context.Context, name, port string, client net.Conn) error {
	remote, err := d.dial(ctx, name, port)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		reset(client)
		_ = remote.Close()
	})
	defer stop()
	var clientErr error
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		clientErr = send(remote, client)
	}()
	readErr, writeErr := pump(client, remote)
	_ = remote.Close()
	if readErr != nil || writeErr != nil {
		_ = client.SetReadDeadline(time.Unix(1, 0)) // ends the opposite direction
		<-sent
		if clientErr != nil && errors.Is(readErr, net.ErrClosed) {
			return clientErr
		}
		return errors.Join(readErr, writeErr)
	}
	// A client that is still sending would lose the end of the response if its connection were closed now.
	closeWrite(client)
	_ = client.SetReadDeadline(time.Now().Add(closeTimeout))
	<-sent
	_, _ = pump(io.Discard, client)
	return nil
}

// send copies a client's data to the pod, with its end, and returns the client's error. An error of remote is left to the
// opposite direction.
func send(remote, client net.Conn) error {
	readErr, writeErr := pump(remote, client)
	switch {
	case readErr != nil:
		_ = remote.Close()
	case writeErr == nil:
		closeWrite(remote)
	}
	return readErr
}

// closeWrite ends the data to a peer. A connection without CloseWrite stays open in both directions.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

var pumpBuffers = sync.Pool{New: func() any { return new([wsconn.MaxMessage]byte) }}

// pump copies until from ends, and returns the error of the failed side. Unlike io.Copy it never calls the writer's ReadFrom: a
// file's ReadFrom would allocate a buffer for each call.
func pump(to io.Writer, from io.Reader) (readErr, writeErr error) {
	buffer := pumpBuffers.Get().(*[wsconn.MaxMessage]byte)
	defer pumpBuffers.Put(buffer)
	for {
		n, err := from.Read(buffer[:])
		if n > 0 {
			written, err := to.Write(buffer[:n])
			if err == nil && written < n {
				err = io.ErrShortWrite
			}
			if err != nil {
				return nil, err
			}
		}
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return err, nil
		}
	}
}
