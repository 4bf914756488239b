package stream

import (
	"cmp"
	"net"
	"slices"
	"time"

	"github.com/anykind/anykind/stream/internal/spdy"
)

// podTunnels are the tunnels to one pod. The dialer's mu guards them.
type podTunnels struct{ slots []*tunnelSlot }

// tunnelSlot is a tunnel, or the place of one that is being dialed.
type tunnelSlot struct {
	ready  chan struct{} // closed when it was dialed
	tunnel *tunnel       // nil until then, and where that failed
	err    error
	taken  int // callers that have not opened a connection yet
	idle   *time.Timer
}

// take returns a slot in which to open a connection, or a new one that the caller fills. It fails with errLegacy while the
// server is known to have no tunnels.
func (d *PortDialer) take(path string) (slot *tunnelSlot, reused bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false, net.ErrClosed
	}
	if time.Now().Before(d.legacyUntil) {
		return nil, false, errLegacy
	}
	if d.pods == nil {
		d.pods = map[string]*podTunnels{}
	}
	tunnels := d.pods[path]
	if tunnels == nil {
		tunnels = &podTunnels{}
		d.pods[path] = tunnels
	}
	slot = tunnels.best(cmp.Or(max(d.Tunnels, 0), defaultTunnels))
	reused = slot != nil
	if !reused {
		slot = &tunnelSlot{ready: make(chan struct{})}
		tunnels.slots = append(tunnels.slots, slot)
	}
	slot.taken++
	if slot.idle != nil {
		slot.idle.Stop()
		slot.idle = nil
	}
	return slot, reused, nil
}

// best returns the slot to share, nil for a new one. One that is being dialed counts as one that takes connections.
func (p *podTunnels) best(most int) *tunnelSlot {
	var best *tunnelSlot
	least, able := 0, 0
	for _, slot := range p.slots {
		load := slot.load()
		if !load.Accepting || load.Behind {
			continue
		}
		able++
		if best == nil || load.Live < least {
			best, least = slot, load.Live
		}
	}
	if best != nil && (least == 0 || able >= most) {
		return best
	}
	return nil
}

// load returns that of the slot's tunnel, with the callers that are about to join it.
func (s *tunnelSlot) load() spdy.Load {
	load := spdy.Load{Accepting: s.err == nil}
	if s.tunnel != nil {
		load = s.tunnel.Load()
	}
	load.Live += s.taken
	return load
}

// untake undoes take, when a connection was opened in the slot or could not be.
func (d *PortDialer) untake(path string, slot *tunnelSlot) {
	d.mu.Lock()
	slot.taken--
	d.mu.Unlock()
	d.tidy(path)
}

// tidy removes slots that take no more connections, and has those that nobody uses closed after a while.
func (d *PortDialer) tidy(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	tunnels := d.pods[path]
	if tunnels == nil {
		return
	}
	tunnels.slots = slices.DeleteFunc(tunnels.slots, func(slot *tunnelSlot) bool {
		load := slot.load()
		if slot.tunnel != nil && load.Accepting && load.Live == 0 && slot.idle == nil {
			slot.idle = time.AfterFunc(idleTunnel, func() { d.expire(path, slot) })
		}
		if load.Accepting || slot.taken > 0 {
			return false
		}
		if slot.idle != nil {
			slot.idle.Stop()
		}
		return true // a retired tunnel closes itself
	})
	if len(tunnels.slots) == 0 {
		delete(d.pods, path)
	}
}

// expire closes a tunnel that nobody has used for long enough.
func (d *PortDialer) expire(path string, slot *tunnelSlot) {
	d.mu.Lock()
	idle := slot.idle != nil && slot.load().Live == 0
	if tunnels := d.pods[path]; idle && tunnels != nil {
		tunnels.slots = slices.DeleteFunc(tunnels.slots, func(other *tunnelSlot) bool { return other == slot })
		if len(tunnels.slots) == 0 {
			delete(d.pods, path)
		}
	}
	d.mu.Unlock()
	if idle {
		slot.tunnel.Retire()
	}
}
