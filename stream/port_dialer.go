package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	lru "k8s.io/apimachinery/pkg/util/cache"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/stream/internal/portconn"
	"github.com/anykind/anykind/stream/internal/spdy"
)

// maxDialAttempts limits the attempts for a connection: a tunnel or a pod may have ended meanwhile.
const maxDialAttempts = 3

// PortDialer dials ports of pods through pooled tunnels: each is a WebSocket with connections to a single pod. Its DialContext
// serves an [http.Transport], a gRPC client or a database driver. Its methods are safe for concurrent use; its fields must not be
// changed after the first call, and it must not be copied. Close it to close the tunnels.
//
// # Tunnels
//
// A connection uses an idle tunnel or a new tunnel, up to MaxTunnels to a pod; further connections share tunnels. Nodes have no
// flow control for single connections. Connections on a tunnel therefore wait for each other when the pod or the reader of a
// connection lags by more than 4 MiB. A tunnel with a lagging reader gets no new connections. An idle tunnel is closed after 30
// seconds.
//
// A tunnel gets no more connections when its node reports an error, announces a shutdown, or does not accept a connection within
// five seconds after it has accepted earlier connections. Open connections continue. Dialing then uses a different tunnel, up to
// three times; an established connection is never moved, because its data may have been processed.
//
// # Pods
//
// The name of a service or workload resolves to a ready pod. The dialer keeps this pod while it is ready. It checks that only
// when it dials, and at most once a second. When the pod is deleted, fails or is no longer ready, its connections break or
// continue with the pod; the next connection goes to a ready pod. The dialer remembers up to 256 names, each for ten minutes
// after it was last dialed.
type PortDialer struct {
	// Target is a handle on pods, services or workloads: any resource with a spec.selector.
	Target Target
	// MaxTunnels limits the tunnels to a pod, each a WebSocket, before connections share tunnels; 0 means 8. With 1 all
	// connections share a tunnel, as in kubectl.
	MaxTunnels int
	// OnError, if not nil, is called for each connection of Forward that could not be opened or that broke, with the client's
	// address, in the connection's goroutine.
	OnError func(client net.Addr, err error)

	mu        sync.Mutex
	closed    bool
	resolvers *lru.LRUExpireCache  // of *podResolver, by name; nil before the first dial
	tunnels   map[string][]*tunnel // by the pod's path; never empty
}

// Port is a port's number or name.
type Port interface{ ~int | ~string }

// DialPort opens a connection to a port of a pod, or of a pod of a service or workload, with the contract of
// [PortDialer.DialContext]. The connection has a tunnel of its own; use a PortDialer for many connections.
func DialPort[P Port](ctx context.Context, target Target, name string, port P) (net.Conn, error) {
	d := &PortDialer{Target: target}
	conn, err := d.dial(ctx, name, fmt.Sprint(port))
	for _, session := range d.takeSessions() {
		session.Retire() // ends with the connection
	}
	return conn, err
}

// DialContext opens a connection to "name:port". The name is an object of the target, and the port a number or a name. The port
// of a service leads to its target port, as in the cluster; the target port's own number or name is accepted, too. The network is
// tcp: a port declared by the service or pod for UDP or SCTP is an error. (A pod not readable by the user is not checked.)
//
// ctx limits the dialing only. DialContext does not detect whether a program listens: the node's report about a connection that
// failed to open or broke is the error of the first Read or Write after the received data. If no program listens, errors.Is finds
// [syscall.ECONNREFUSED] in the error. io.EOF is the end intended by the pod. A broken connection returns io.ErrUnexpectedEOF, at
// the latest 61 seconds after its peer has vanished or stopped reading. Errors of [net.Conn]'s methods are a [*net.OpError]. The
// connection has CloseWrite, like [net.TCPConn].
//
// See https://kubernetes.io/docs/tasks/access-application-cluster/port-forward-access-application-cluster/.
func (d *PortDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, fmt.Errorf("dial %s %s: only tcp can be forwarded to pods", network, address)
	}
	name, port, err := splitAddress(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	return d.dial(ctx, name, port)
}

func splitAddress(address string) (name, port string, err error) {
	if name, port, err = net.SplitHostPort(address); err != nil {
		err = fmt.Errorf("the address must be that of an object and its port, as web-0:8080: %w", err)
	}
	return name, port, err
}

func (d *PortDialer) dial(ctx context.Context, name, port string) (net.Conn, error) {
	backoff := retry.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for attempt := 1; ; attempt++ {
		conn, err := d.dialOnce(ctx, name, port)
		if err == nil {
			return conn, nil
		}
		if attempt < maxDialAttempts && isStale(err) && ctx.Err() == nil {
			d.forgetPod(name)
			err = backoff.Wait(ctx, attempt-1) // the first retry is immediate, for a tunnel with an undetected end
		}
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", net.JoinHostPort(name, port), err)
		}
	}
}

// dialOnce resolves the address, gets a tunnel to the pod, and opens a connection in it.
func (d *PortDialer) dialOnce(ctx context.Context, name, port string) (*portconn.Conn, error) {
	t, number, reused, err := d.reach(ctx, name, port)
	if err != nil {
		return nil, err
	}
	defer d.release(t)
	conn, err := t.dial(ctx, number)
	if err != nil && ctx.Err() == nil && !errors.Is(err, spdy.ErrNotAccepted) && (reused || errors.Is(err, spdy.ErrRetired)) {
		return nil, &staleError{err} // the tunnel has ended
	}
	return conn, err
}

// reach resolves an address and reserves a tunnel to its pod. The caller releases the tunnel.
func (d *PortDialer) reach(ctx context.Context, name, port string) (t *tunnel, number uint16, reused bool, err error) {
	r, err := d.resolver(name)
	if err != nil {
		return nil, 0, false, err
	}
	pod, number, err := r.resolve(ctx, port)
	if err != nil {
		return nil, 0, false, err
	}
	t, reused, err = d.acquire(ctx, pod)
	if apierrors.IsNotFound(err) && !r.ref.isPod() {
		err = &staleError{err} // the chosen pod is deleted
	}
	return t, number, reused, err
}

// checkPort returns an error for an unreachable port. A newly opened tunnel stays in the pool.
func (d *PortDialer) checkPort(ctx context.Context, name, port string) error {
	t, _, _, err := d.reach(ctx, name, port)
	if err == nil {
		d.release(t)
	}
	if isStale(err) {
		return nil
	}
	return err
}

// forgetPod makes the next dial of a name choose a pod again.
func (d *PortDialer) forgetPod(name string) {
	if r, err := d.resolver(name); err == nil {
		r.stale.Store(true)
	}
}

// staleError is the error of a pod or tunnel that has ended since it was chosen: a new attempt may succeed.
type staleError struct{ error }

func (e *staleError) Unwrap() error { return e.error }

func isStale(err error) bool {
	var stale *staleError
	return errors.As(err, &stale)
}

// Close closes all tunnels and the open connections. Connections closed earlier still send their written bytes.
func (d *PortDialer) Close() error {
	for _, session := range d.takeSessions() {
		if session.Load().Live > 0 {
			session.Close(net.ErrClosed)
		} else {
			session.Retire()
		}
	}
	return nil
}

// takeSessions makes dialing fail and returns the sessions of all tunnels. The caller ends them.
func (d *PortDialer) takeSessions() (open []*spdy.Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, tunnels := range d.tunnels {
		for _, t := range tunnels {
			t.stopIdleTimer()
			if t.session != nil {
				open = append(open, t.session)
			}
		}
	}
	d.closed = true
	d.tunnels = nil
	d.resolvers = nil
	return open
}
