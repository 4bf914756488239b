package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/stream/internal/portconn"
	"github.com/anykind/anykind/stream/internal/spdy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// defaultTunnels is how many tunnels lead to a pod unless the dialer says otherwise.
	defaultTunnels = 8
	// idleTunnel is how long a tunnel without connections is kept.
	idleTunnel = 30 * time.Second
	// dialAttempts is how often a connection is tried: a tunnel may have broken, a pod may have gone meanwhile.
	dialAttempts = 3
	// legacyAge is for how long a server that has no tunnels is not asked for one again.
	legacyAge = 10 * time.Minute
)

// PortDialer dials ports of pods over tunnels that it keeps: WebSockets that each carry connections to one pod. Its
// DialContext serves an [http.Transport], a gRPC client or a database driver. Its methods are safe for concurrent use; its
// fields must not be changed after the first call, and it must not be copied. Close it to close the tunnels.
//
// # Tunnels
//
// A connection takes a tunnel without connections, or a new one, until there are as many as Tunnels to a pod; further ones
// share. Connections that share a tunnel wait for one another when the pod or the reader of one lags by more than 4 MiB,
// because nodes have no flow control for single connections; a tunnel on which a reader lags takes no new connections. A
// tunnel that nobody uses is closed after 30 seconds. Servers before Kubernetes 1.30 have no tunnels; each connection is a
// WebSocket of its own there.
//
// A tunnel takes no more connections when its node reports an error, announces that it goes away, or does not accept a
// connection within five seconds although it has accepted others. Connections that are open go on. Dialing then uses
// another tunnel, and does so up to three times; a connection that has been handed out is never moved, because what was
// sent on it may have been processed.
//
// # Pods
//
// The name of a service or workload leads to a ready pod. The dialer stays with this pod while it is ready, which it
// checks at most once a second and only when it dials. When the pod is deleted, fails or is not ready any more, connections
// to it break or go on as the pod does; the next one that is dialed goes to another ready pod. The dialer remembers up to
// 256 names, each for ten minutes after it was last dialed.
type PortDialer struct {
	// Target is a handle on pods, services or workloads: anything that has a spec.selector.
	Target Target
	// Tunnels is how many tunnels to a pod, each a WebSocket, connections spread over before they share; 0 means 8.
	// With 1 they all share one, as in kubectl.
	Tunnels int
	// Failed, if not nil, is called for each connection of Forward that could not be opened or that broke, with the
	// client's address, in the connection's goroutine.
	Failed func(client net.Addr, err error)

	mu          sync.Mutex
	closed      bool
	names       map[string]*podResolver
	pods        map[string]*podTunnels // by the pod's path; only those that have tunnels
	legacy      map[*legacyConn]struct{}
	legacyUntil time.Time // until then the server is taken for one without tunnels
}

// DialContext opens a connection to "name:port". The name is that of an object of the target, and the port a number or a
// name. The port of a service leads to its target port, as in the cluster; the target port's own number or name works, too.
// The network is tcp: a port that the service or pod declares for UDP or SCTP is an error. (A pod that the user may not
// read is not checked.)
//
// ctx ends the dialing alone. Whether anybody listens is known once something is read or written: what the node says about
// a connection that it could not open or that broke is the error of the first Read or Write after what was received, and
// errors.Is finds [syscall.ECONNREFUSED] in it if nobody listens. io.EOF is an end that the pod meant. A connection that
// breaks off returns io.ErrUnexpectedEOF, at the latest 61 seconds after its peer has vanished or has stopped to take what
// is sent. Errors of [net.Conn]'s methods are a [*net.OpError]. The connection has CloseWrite, as [net.TCPConn] has.
//
// See https://kubernetes.io/docs/tasks/access-application-cluster/port-forward-access-application-cluster/.
func (d *PortDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, fmt.Errorf("dial %s %s: only tcp can be forwarded to pods", network, address)
	}
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: the address must be that of an object and its port, as web-0:8080: %w", address, err)
	}
	conn, err := d.dial(ctx, name, port)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (d *PortDialer) dial(ctx context.Context, name, port string) (*portconn.Conn, error) {
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		conn, err := d.try(ctx, name, port)
		if err == nil {
			return conn, nil
		}
		if attempt < dialAttempts && isStale(err) && ctx.Err() == nil {
			d.forget(name)
			err = backoff.Wait(ctx, attempt-1) // at first at once, for a tunnel may have ended unnoticed
		}
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", net.JoinHostPort(name, port), err)
		}
	}
}

// forget has the pod of a name chosen anew.
func (d *PortDialer) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.names[name]; known != nil {
		known.forget()
	}
}

// staleError is the error of a pod or a tunnel that was there a moment before: another may be.
type staleError struct{ error }

func (e *staleError) Unwrap() error { return e.error }

func isStale(err error) bool {
	var stale *staleError
	return errors.As(err, &stale)
}

// try makes one attempt.
func (d *PortDialer) try(ctx context.Context, name, port string) (*portconn.Conn, error) {
	known, err := d.resolver(name)
	if err != nil {
		return nil, err
	}
	path, pod, number, err := known.resolve(ctx, port)
	if err != nil {
		return nil, err
	}
	to := portconn.Addr{Pod: pod, Port: number}
	var conn *portconn.Conn
	err = d.inTunnel(ctx, path, pod, func(t *tunnel) (err error) {
		conn, err = t.open(ctx, number)
		return err
	})
	var foreign *foreignError
	if errors.As(err, &foreign) {
		conn, err = d.openLegacy(ctx, path, to, foreign)
	}
	if err != nil && apierrors.IsNotFound(err) && !known.at.isPod() {
		err = &staleError{err} // the pod that was chosen has gone
	}
	return conn, err
}

// reach opens a tunnel to where the address leads, so that a mistyped one is an error. Of servers without tunnels nothing
// is found out.
func (d *PortDialer) reach(ctx context.Context, address string) error {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("forward to %s: the address must be that of an object and its port, as web-0:8080: %w", address, err)
	}
	known, err := d.resolver(name)
	if err == nil {
		var path, pod string
		if path, pod, _, err = known.resolve(ctx, port); err == nil {
			err = d.inTunnel(ctx, path, pod, func(*tunnel) error { return nil })
		}
	}
	var foreign *foreignError
	if err == nil || errors.As(err, &foreign) || isStale(err) {
		return nil
	}
	return fmt.Errorf("forward to %s: %w", address, err)
}

// errLegacy is the error of a server that is known to have no tunnels.
var errLegacy = &foreignError{errors.New("the server has no tunnels")}

// inTunnel calls open with a tunnel to a pod, which it dials unless there is one.
func (d *PortDialer) inTunnel(ctx context.Context, path, pod string, open func(*tunnel) error) error {
	slot, reused, err := d.take(path)
	if err != nil {
		return err
	}
	defer d.untake(path, slot)
	if !reused {
		d.fill(ctx, path, slot, pod)
	}
	select {
	case <-slot.ready:
	case <-ctx.Done():
		return retry.ContextError(ctx)
	}
	if err = slot.err; err == nil {
		err = open(slot.tunnel)
	} else if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err // what the server says holds for all that waited for the tunnel
	}
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, spdy.ErrNotAccepted):
		return err
	case reused || errors.Is(err, spdy.ErrRetired):
		return &staleError{err} // the tunnel has ended, or the ctx of the caller that dialed it
	default:
		return err
	}
}

// fill dials a slot's tunnel.
func (d *PortDialer) fill(ctx context.Context, path string, slot *tunnelSlot, pod string) {
	opened, err := dialTunnel(ctx, d.Target.Conn(), path, pod, func() { d.tidy(path) })
	d.mu.Lock()
	slot.tunnel, slot.err = opened, err
	closed := d.closed
	d.mu.Unlock()
	close(slot.ready)
	if closed && opened != nil {
		opened.Close(net.ErrClosed)
	}
}

// openLegacy opens a connection over channels, because of why.
func (d *PortDialer) openLegacy(ctx context.Context, path string, to portconn.Addr, why *foreignError) (*portconn.Conn, error) {
	opened, err := dialLegacy(ctx, d.Target.Conn(), path, to)
	d.mu.Lock()
	defer d.mu.Unlock()
	var foreign *foreignError
	switch {
	case err == nil && d.closed:
		opened.end(net.ErrClosed)
		return nil, net.ErrClosed
	case err == nil:
	case why != errLegacy:
		return nil, fmt.Errorf("%w; and over the legacy channels: %w", why, err)
	case errors.As(err, &foreign):
		d.legacyUntil = time.Time{} // it may have been replaced by one with tunnels
		return nil, &staleError{err}
	default:
		return nil, err
	}
	if why != errLegacy {
		d.legacyUntil = time.Now().Add(legacyAge)
	}
	if d.legacy == nil {
		d.legacy = map[*legacyConn]struct{}{}
	}
	d.legacy[opened] = struct{}{}
	opened.conn.OnClose(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.legacy, opened)
	})
	return opened.conn, nil
}

// Close closes all tunnels, and with them the connections that are open. Those that were closed before have the time
// to send what was written.
func (d *PortDialer) Close() error {
	d.mu.Lock()
	d.closed = true
	var tunnels []*tunnel
	for _, pod := range d.pods {
		for _, slot := range pod.slots {
			if slot.idle != nil {
				slot.idle.Stop()
			}
			if slot.tunnel != nil {
				tunnels = append(tunnels, slot.tunnel)
			}
		}
	}
	legacy := slices.Collect(maps.Keys(d.legacy))
	d.pods, d.legacy, d.names = nil, nil, nil
	d.mu.Unlock()
	for _, conn := range legacy {
		conn.end(net.ErrClosed)
	}
	for _, tunnel := range tunnels {
		if tunnel.Load().Live > 0 {
			tunnel.Close(net.ErrClosed)
		} else {
			tunnel.Retire()
		}
	}
	return nil
}
