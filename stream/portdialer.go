package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// defaultTunnels is how many tunnels lead to a pod unless the dialer says otherwise.
	defaultTunnels = 8
	// idleTunnel is how long a tunnel without connections is kept.
	idleTunnel = 30 * time.Second
	// dialAttempts is how often a connection is tried: a tunnel may have broken, a pod may have gone meanwhile.
	dialAttempts = 3
)

// PortDialer dials the ports of what its target names, over tunnels that it keeps. Its DialContext serves an
// [http.Transport], a gRPC client or a database driver. Its methods are safe for concurrent use; its fields must not
// be changed after the first call, and it must not be copied.
//
// A connection takes a tunnel that has none, or a new one, until there are as many as Tunnels to a pod; further ones
// share. What shares a tunnel waits for one another where the pod or the reader of one lags by more than 4 MiB, because
// nodes know no flow control for single connections: a tunnel on which somebody lags takes no new connections.
type PortDialer struct {
	// Target is a handle on pods, on services or on a workload: anything that has a spec.selector.
	Target Target
	// Tunnels is how many tunnels to a pod, each a WebSocket, connections spread over before they share; 0 means 8.
	// With 1 they all share one, as in kubectl.
	Tunnels int
	// Failed, if any, hears of each connection of Forward that could not be opened or that broke, and of whom it came
	// from. It is called in the connection's goroutine.
	Failed func(client net.Addr, err error)

	mu     sync.Mutex
	closed bool
	names  map[string]*choices
	pods   map[string]*podTunnels
}

// podTunnels are the tunnels to one pod, by its path. The dialer's mu guards them.
type podTunnels struct {
	slots  []*tunnelSlot
	legacy map[*portConn]bool // not nil where the server knows no tunnels: the connections that are open
}

// tunnelSlot is a tunnel, or a place for one.
type tunnelSlot struct {
	ready  chan struct{} // closed when it was dialed
	tunnel *tunnel       // nil until then, and where that failed
	err    error
	taken  int // by who has not opened a connection yet
	idle   *time.Timer
}

// DialContext opens a connection to "name:port", where name is that of an object of the target, and port a number or a
// name. A service's port leads to its target port, as in the cluster; with a service or a workload a ready pod is
// chosen, which serves until it is ready no more. The network is tcp.
//
// ctx ends the dialing alone. An error of [net.Conn]'s methods is a [*net.OpError]; what the node said of a connection
// that it could not open or that broke comes with the first Read or Write, and errors.Is finds [syscall.ECONNREFUSED]
// where nobody listens. io.EOF is an end that the pod meant; a connection that breaks off tells of
// io.ErrUnexpectedEOF, at the latest 61 seconds after its peer has vanished or has stopped to take what is sent. The
// connection has CloseWrite, as [net.TCPConn] has.
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

func (d *PortDialer) dial(ctx context.Context, name, port string) (*portConn, error) {
	for attempt := 1; ; attempt++ {
		conn, err := d.try(ctx, name, port)
		if err == nil {
			return conn, nil
		}
		if attempt == dialAttempts || ctx.Err() != nil || !worthAnother(err) {
			return nil, fmt.Errorf("dial %s: %w", net.JoinHostPort(name, port), err)
		}
		d.forget(name)
	}
}

// forget has the pod of a name chosen anew.
func (d *PortDialer) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if chosen := d.names[name]; chosen != nil {
		chosen.forget()
	}
}

// goneError is an error of a pod or a tunnel that was there a moment before: another may be.
type goneError struct{ error }

func (e *goneError) Unwrap() error { return e.error }

func worthAnother(err error) bool {
	var gone *goneError
	return errors.As(err, &gone)
}

// try makes one attempt.
func (d *PortDialer) try(ctx context.Context, name, port string) (*portConn, error) {
	chosen, err := d.chooser(name)
	if err != nil {
		return nil, err
	}
	path, pod, number, err := chosen.pod(ctx, port)
	if err != nil {
		return nil, err
	}
	to := portAddr{pod, number}
	conn, err := d.openTunneled(ctx, path, to)
	var foreign *foreignError
	if errors.As(err, &foreign) {
		var legacyErr error
		conn, legacyErr = d.openLegacy(ctx, path, to)
		if legacyErr != nil && foreign != errLegacy {
			legacyErr = fmt.Errorf("%w; and over the legacy channels: %w", err, legacyErr)
		}
		err = legacyErr
	}
	return conn, chosenGone(chosen, err)
}

// chosenGone marks the error of a pod that was chosen and has gone since.
func chosenGone(chosen *choices, err error) error {
	if err != nil && apierrors.IsNotFound(err) && !chosen.at.isPod() {
		return &goneError{err}
	}
	return err
}

// chooser knows the pods of a name.
func (d *PortDialer) chooser(name string) (*choices, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.names[name]; known != nil {
		return known, nil
	}
	at, err := locate(d.Target, name)
	if err != nil {
		return nil, fmt.Errorf("portforward: %w", err)
	}
	if d.names == nil {
		d.names = map[string]*choices{}
	}
	d.names[name] = newChoices(d.Target.Conn(), at)
	return d.names[name], nil
}

// podAt is called with the lock.
func (d *PortDialer) podAt(path string) *podTunnels {
	if d.pods == nil {
		d.pods = map[string]*podTunnels{}
	}
	if d.pods[path] == nil {
		d.pods[path] = &podTunnels{}
	}
	return d.pods[path]
}

// reach opens a tunnel to where the address leads, so that who mistypes it hears of it. Of servers without tunnels
// nothing is found out.
func (d *PortDialer) reach(ctx context.Context, address string) error {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("forward to %s: the address must be that of an object and its port, as web-0:8080: %w", address, err)
	}
	chosen, err := d.chooser(name)
	if err == nil {
		var path, pod string
		if path, pod, _, err = chosen.pod(ctx, port); err == nil {
			err = d.inTunnel(ctx, path, pod, func(*tunnel) error { return nil })
		}
	}
	var foreign *foreignError
	if err == nil || errors.As(err, &foreign) || worthAnother(err) {
		return nil
	}
	return fmt.Errorf("forward to %s: %w", address, err)
}

// openTunneled opens a connection in a tunnel.
func (d *PortDialer) openTunneled(ctx context.Context, path string, to portAddr) (conn *portConn, err error) {
	err = d.inTunnel(ctx, path, to.pod, func(t *tunnel) error {
		conn, err = t.open(ctx, to.port)
		return err
	})
	return conn, err
}

// errLegacy is the error of a server that is known to have no tunnels.
var errLegacy = &foreignError{errors.New("the server has no tunnels")}

// inTunnel calls open with a tunnel to a pod, which it dials where nobody has yet.
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
		return ended(ctx, ctx.Err())
	}
	if err = slot.err; err == nil {
		err = open(slot.tunnel)
	} else if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err // the server's word, which holds for all who waited for it
	}
	if err != nil && reused && ctx.Err() == nil {
		return &goneError{err} // the tunnel has ended, or the ctx of who dialed it
	}
	return err
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
		opened.end(net.ErrClosed)
	}
}

// openLegacy opens a connection over channels.
func (d *PortDialer) openLegacy(ctx context.Context, path string, to portAddr) (*portConn, error) {
	conn, err := dialLegacy(ctx, d.Target.Conn(), path, to)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	closed := d.closed
	if !closed {
		pod := d.podAt(path)
		if pod.legacy == nil {
			pod.legacy = map[*portConn]bool{}
		}
		pod.legacy[conn] = true
		conn.onClose = append(conn.onClose, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(pod.legacy, conn)
		})
	}
	d.mu.Unlock()
	if closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close closes all tunnels, and with them the connections that are open. Those that were closed before have the time
// to send what was written.
func (d *PortDialer) Close() error {
	d.mu.Lock()
	d.closed = true
	var open []*tunnel
	var legacy []*legacyConn
	for path, pod := range d.pods {
		for _, slot := range pod.slots {
			if slot.idle != nil {
				slot.idle.Stop()
			}
			if slot.tunnel != nil {
				open = append(open, slot.tunnel)
			}
		}
		for conn := range pod.legacy {
			legacy = append(legacy, conn.carrier.(*legacyConn))
		}
		delete(d.pods, path)
	}
	d.mu.Unlock()
	for _, conn := range legacy {
		conn.end(net.ErrClosed)
	}
	for _, tunnel := range open {
		if live, _, _ := tunnel.load(); live > 0 {
			tunnel.end(net.ErrClosed)
		} else {
			tunnel.leave()
		}
	}
	return nil
}
