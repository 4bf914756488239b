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
	// idleTimeout is how long an idle tunnel is kept.
	idleTimeout = 30 * time.Second
)

// tunnel carries connections to one pod's ports over one WebSocket. It is safe for concurrent use.
type tunnel struct {
	*spdy.Session
	pod    string
	local  net.Addr
	buffer *portconn.ReceiveBuffer
}

// dialTunnel opens a tunnel to a pod. ctx limits the dialing only. onChange is called, without locks, when a connection was
// closed and when the tunnel ended.
func dialTunnel(ctx context.Context, conn *transport.Conn, pod podRef, onChange func()) (*tunnel, error) {
	opened, err := dial(ctx, conn, pod.path+"/portforward", nil, protocolTunnel)
	if err != nil {
		return nil, err
	}
	if !opened.Detach() {
		opened.Close()
		return nil, retry.ContextError(ctx)
	}
	t := &tunnel{pod: pod.name, local: opened.LocalAddr(), buffer: portconn.NewReceiveBuffer()}
	t.Session = spdy.NewSession(opened, spdy.Options{
		OnChange:   onChange,
		BreakError: func(err error) error { return portconn.BreakError(pod.name, err) },
	})
	go opened.KeepAlive()
	return t, nil
}

// dial opens a connection to a port: see [spdy.Session.Open].
func (t *tunnel) dial(ctx context.Context, port uint16) (*portconn.Conn, error) {
	conn := portconn.New(portconn.Addr{Pod: t.pod, Port: port}, t.local, t.buffer)
	pair, err := t.Open(ctx, port, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	conn.SetCarrier(pair)
	return conn, nil
}

// tunnelSlot is a tunnel of the pool, or one that is being dialed. The dialer's mu guards it.
type tunnelSlot struct {
	path      string        // the pod's
	ready     chan struct{} // closed after dialing; tunnel and err do not change after that
	tunnel    *tunnel       // nil until then, and if that failed
	err       error
	reserved  int // callers that have not opened a connection yet
	idleTimer *time.Timer
}

// load returns the tunnel's load, including callers that are about to use it. A tunnel that is being dialed accepts
// connections.
func (s *tunnelSlot) load() spdy.Load {
	load := spdy.Load{Accepting: s.err == nil}
	if s.tunnel != nil {
		load = s.tunnel.Load()
	}
	load.Live += s.reserved
	return load
}

func (s *tunnelSlot) stopIdleTimer() {
	if s.idleTimer != nil {
		s.idleTimer.Stop()
		s.idleTimer = nil
	}
}

// acquire reserves a tunnel to a pod until release: a pooled one, or one that it dials.
func (d *PortDialer) acquire(ctx context.Context, pod podRef) (slot *tunnelSlot, reused bool, err error) {
	slot, reused, err = d.reserve(pod.path)
	if err != nil {
		return nil, false, err
	}
	if !reused {
		d.fill(ctx, slot, pod)
	}
	select {
	case <-slot.ready:
		err = slot.err
	case <-ctx.Done():
		err = retry.ContextError(ctx)
	}
	if err == nil {
		return slot, reused, nil
	}
	d.release(slot)
	if reused && ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = &staleError{err} // the ctx of the caller that dialed it has ended
	}
	return nil, false, err
}

// reserve returns a slot to share, or a new one that the caller fills.
func (d *PortDialer) reserve(path string) (slot *tunnelSlot, reused bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false, net.ErrClosed
	}
	if d.tunnels == nil {
		d.tunnels = map[string][]*tunnelSlot{}
	}
	slot = bestSlot(d.tunnels[path], cmp.Or(max(d.MaxTunnels, 0), defaultMaxTunnels))
	reused = slot != nil
	if !reused {
		slot = &tunnelSlot{path: path, ready: make(chan struct{})}
		d.tunnels[path] = append(d.tunnels[path], slot)
	}
	slot.reserved++
	slot.stopIdleTimer()
	return slot, reused, nil
}

// bestSlot returns the slot with the fewest connections, or nil if a new one is better.
func bestSlot(slots []*tunnelSlot, maxTunnels int) *tunnelSlot {
	var best *tunnelSlot
	least, usable := 0, 0
	for _, slot := range slots {
		load := slot.load()
		if !load.Accepting || load.Behind {
			continue
		}
		usable++
		if best == nil || load.Live < least {
			best, least = slot, load.Live
		}
	}
	if best != nil && (least == 0 || usable >= maxTunnels) {
		return best
	}
	return nil
}

// fill dials a slot's tunnel.
func (d *PortDialer) fill(ctx context.Context, slot *tunnelSlot, pod podRef) {
	opened, err := dialTunnel(ctx, d.Target.Conn(), pod, func() { d.update(slot.path) })
	d.mu.Lock()
	slot.tunnel, slot.err = opened, err
	closed := d.closed
	d.mu.Unlock()
	close(slot.ready)
	if closed && opened != nil {
		opened.Close(net.ErrClosed)
	}
}

// release ends the reservation of a slot.
func (d *PortDialer) release(slot *tunnelSlot) {
	d.mu.Lock()
	slot.reserved--
	d.mu.Unlock()
	d.update(slot.path)
}

// update removes slots that accept no more connections, whose tunnels close themselves, and starts the timers of idle ones.
func (d *PortDialer) update(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deleteSlots(path, func(slot *tunnelSlot) bool {
		load := slot.load()
		if slot.tunnel != nil && load.Accepting && load.Live == 0 && slot.idleTimer == nil {
			slot.idleTimer = time.AfterFunc(idleTimeout, func() { d.expire(slot) })
		}
		if load.Accepting || slot.reserved > 0 {
			return false
		}
		slot.stopIdleTimer()
		return true
	})
}

// deleteSlots deletes slots of a pod, with the lock.
func (d *PortDialer) deleteSlots(path string, del func(*tunnelSlot) bool) {
	slots, found := d.tunnels[path]
	if !found {
		return
	}
	if slots = slices.DeleteFunc(slots, del); len(slots) == 0 {
		delete(d.tunnels, path)
	} else {
		d.tunnels[path] = slots
	}
}

// expire closes a tunnel that was idle for idleTimeout.
func (d *PortDialer) expire(slot *tunnelSlot) {
	d.mu.Lock()
	isIdle := slot.idleTimer != nil && slot.load().Live == 0
	if isIdle {
		d.deleteSlots(slot.path, func(s *tunnelSlot) bool { return s == slot })
	}
	d.mu.Unlock()
	if isIdle {
		slot.tunnel.Retire()
	}
}
