package stream

import (
	"cmp"
	"net"
	"slices"
	"time"
)

// take finds a slot in which to open a connection, or makes one that the caller fills. It fails
// where the server knows no tunnels.
func (d *PortDialer) take(path string) (slot *tunnelSlot, reused bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false, net.ErrClosed
	}
	tunnels := d.podAt(path)
	if tunnels.legacy != nil {
		return nil, false, errLegacy
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

// best is the slot to share, nil for a new one. One that is being dialed counts as one that takes connections.
func (p *podTunnels) best(most int) *tunnelSlot {
	var best *tunnelSlot
	least, able := 0, 0
	for _, slot := range p.slots {
		live, takes, behind := slot.load()
		if !takes || behind {
			continue
		}
		able++
		if best == nil || live < least {
			best, least = slot, live
		}
	}
	if best != nil && (least == 0 || able >= most) {
		return best
	}
	return nil
}

// load is the slot's tunnel's, with those who are about to join it.
func (s *tunnelSlot) load() (live int, takes, behind bool) {
	if s.tunnel != nil {
		live, takes, behind = s.tunnel.load()
	} else {
		takes = s.err == nil
	}
	return live + s.taken, takes, behind
}

// untake is called when a connection was opened in a slot, or was not.
func (d *PortDialer) untake(path string, slot *tunnelSlot) {
	d.mu.Lock()
	slot.taken--
	d.mu.Unlock()
	d.tidy(path)
}

// tidy removes the slots that are of no more use, and closes in a while what nobody uses.
func (d *PortDialer) tidy(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	tunnels := d.pods[path]
	if tunnels == nil {
		return
	}
	tunnels.slots = slices.DeleteFunc(tunnels.slots, func(slot *tunnelSlot) bool {
		live, takes, _ := slot.load()
		if slot.tunnel != nil && takes && live == 0 && slot.idle == nil {
			slot.idle = time.AfterFunc(idleTunnel, func() { d.expire(path, slot) })
		}
		return !takes && slot.taken == 0 // a full tunnel closes by itself
	})
	if len(tunnels.slots) == 0 && tunnels.legacy == nil {
		delete(d.pods, path)
	}
}

// expire closes a tunnel that nobody has used for long enough.
func (d *PortDialer) expire(path string, slot *tunnelSlot) {
	d.mu.Lock()
	live, _, _ := slot.load()
	if live == 0 && slot.idle != nil {
		if tunnels := d.pods[path]; tunnels != nil {
			tunnels.slots = slices.DeleteFunc(tunnels.slots, func(other *tunnelSlot) bool { return other == slot })
		}
	}
	d.mu.Unlock()
	if live == 0 {
		slot.tunnel.leave()
	}
}
