package stream

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/stream/internal/portconn"
	"github.com/anykind/anykind/stream/internal/spdy"
	"github.com/anykind/anykind/transport"
)

const (
	// defaultMaxTunnels is the default of PortDialer.MaxTunnels.
	defaultMaxTunnels = 8
	// idleTimeout is the time before an idle tunnel is closed.
	idleTimeout = 30 * time.Second
)

// tunnel carries connections to the ports of a pod over a WebSocket. It may still be dialing. The dialer's mu guards it.
type tunnel struct {
	pod       podRef
	buffer    *portconn.ReceiveBuffer
	ready     chan struct{} // closed after dialing; local, session and err do not change after that
	local     net.Addr
	session   *spdy.Session // nil until then, and after a failure
	err       error
	reserved  int // callers that have not opened a connection yet
	idleTimer *time.Timer
}

// open opens the tunnel's session. ctx limits the dialing only. onChange is called, without locks, when a connection was closed
// and when the session ended.
func (t *tunnel) open(ctx context.Context, conn *transport.Conn, onChange func()) (*spdy.Session, error) {
	opened, err := dial(ctx, conn, t.pod.path+"/portforward", nil, protocolTunnel)
	if err != nil {
		return nil, err
	}
	if !opened.Detach() {
		opened.Close()
		return nil, retry.ContextError(ctx)
	}
	t.local = opened.LocalAddr()
	session := spdy.NewSession(opened, spdy.Options{
		OnChange:   onChange,
		BreakError: func(err error) error { return portconn.BreakError(t.pod.name, err) },
	})
	go opened.KeepAlive()
	return session, nil
}

// dial opens a connection to a port: see [spdy.Session.Open].
func (t *tunnel) dial(ctx context.Context, port uint16) (*portconn.Conn, error) {
	conn := portconn.New(portconn.Addr{Pod: t.pod.name, Port: port}, t.local, t.buffer)
	pair, err := t.session.Open(ctx, port, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	conn.SetCarrier(pair)
	return conn, nil
}

// load returns the tunnel's load, including callers with a reservation. A dialing tunnel accepts connections.
func (t *tunnel) load() spdy.Load {
	load := spdy.Load{Accepting: t.err == nil}
	if t.session != nil {
		load = t.session.Load()
	}
	load.Live += t.reserved
	return load
}

func (t *tunnel) stopIdleTimer() {
	if t.idleTimer != nil {
		t.idleTimer.Stop()
		t.idleTimer = nil
	}
}

// acquire reserves a tunnel to a pod until release: a pooled tunnel, or a new tunnel.
func (d *PortDialer) acquire(ctx context.Context, pod podRef) (t *tunnel, reused bool, err error) {
	t, reused, err = d.reserve(pod)
	if err != nil {
		return nil, false, err
	}
	if !reused {
		d.fill(ctx, t)
	}
	select {
	case <-t.ready:
		err = t.err
	case <-ctx.Done():
		err = retry.ContextError(ctx)
	}
	if err == nil {
		return t, reused, nil
	}
	d.release(t)
	if reused && ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = &staleError{err} // the ctx of the dialing caller has ended
	}
	return nil, false, err
}

// reserve returns a tunnel to share, or a new tunnel for the caller to fill.
func (d *PortDialer) reserve(pod podRef) (t *tunnel, reused bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false, net.ErrClosed
	}
	if d.tunnels == nil {
		d.tunnels = map[string][]*tunnel{}
	}
	t = bestTunnel(d.tunnels[pod.path], cmp.Or(max(d.MaxTunnels, 0), defaultMaxTunnels))
	reused = t != nil
	if !reused {
		t = &tunnel{pod: pod, buffer: portconn.NewReceiveBuffer(), ready: make(chan struct{})}
		d.tunnels[pod.path] = append(d.tunnels[pod.path], t)
	}
	t.reserved++
	t.stopIdleTimer()
	return t, reused, nil
}

// bestTunnel returns the tunnel with the fewest connections, or nil if a new tunnel is better.
func bestTunnel(tunnels []*tunnel, maxTunnels int) *tunnel {
	var best *tunnel
	least := 0
	usable := 0
	for _, t := range tunnels {
		load := t.load()
		if !load.Accepting || load.Behind {
			continue
		}
		usable++
		if best == nil || load.Live < least {
			best = t
			least = load.Live
		}
	}
	if best != nil && (least == 0 || usable >= maxTunnels) {
		return best
	}
	return nil
}

func (d *PortDialer) fill(ctx context.Context, t *tunnel) {
	session, err := t.open(ctx, d.Target.Conn(), func() { d.update(t.pod.path) })
	d.mu.Lock()
	t.session = session
	t.err = err
	closed := d.closed
	d.mu.Unlock()
	close(t.ready)
	if closed && session != nil {
		session.Close(net.ErrClosed)
	}
}

func (d *PortDialer) release(t *tunnel) {
	d.mu.Lock()
	t.reserved--
	d.mu.Unlock()
	d.update(t.pod.path)
}

// update drops retired tunnels, which close themselves, and starts the timers of idle tunnels.
func (d *PortDialer) update(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := slices.DeleteFunc(d.tunnels[path], func(t *tunnel) bool {
		load := t.load()
		if t.session != nil && load.Accepting && load.Live == 0 && t.idleTimer == nil {
			t.idleTimer = time.AfterFunc(idleTimeout, func() { d.expire(t) })
		}
		if load.Accepting || t.reserved > 0 {
			return false
		}
		t.stopIdleTimer()
		return true
	})
	if len(kept) > 0 {
		d.tunnels[path] = kept
	} else {
		delete(d.tunnels, path)
	}
}

// expire closes a tunnel after idleTimeout without connections.
func (d *PortDialer) expire(t *tunnel) {
	d.mu.Lock()
	if t.idleTimer != nil && t.load().Live == 0 {
		t.session.Retire()
	}
	d.mu.Unlock()
	d.update(t.pod.path)
}
