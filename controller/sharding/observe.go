package sharding

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/resourceversion"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

const (
	groupLabel           = "sharding.anykind.dev/group"
	assignmentAnnotation = "sharding.anykind.dev/assignment"
)

type leaseObject = unstructured.Object

// observedMember is a member's Lease as this process has observed it.
type observedMember struct {
	uid       types.UID
	version   string
	renewed   string    // spec.renewTime
	isLeaving bool      // the member drains
	seenAt    time.Time // when this process has received the last change; the monotonic clock counts
	isGone    bool
	freeAt    time.Time // when the segments of a gone member may be taken
	isFree    bool      // since then, by a read
}

// observedAssignment is the Lease with the assignment as this process has observed it.
type observedAssignment struct {
	lease   *leaseObject // nil if it does not exist
	content assignment
	err     error     // of reading it
	seenAt  time.Time // when this process has first received the object with this UID
}

// observe follows the group's Leases until ctx ends.
func (g *Group) observe(ctx context.Context) {
	opts := &dynamic.FollowOptions{LabelSelector: groupLabel + "=" + g.name}
	for ctx.Err() == nil {
		for change, err := range g.leases.Follow(ctx, opts) {
			if err != nil {
				g.reportObserved(ctx, err)
				break
			}
			g.mu.Lock()
			g.events = append(g.events, change)
			g.mu.Unlock()
			g.signal()
		}
		_ = retry.Sleep(ctx, retry.Jitter(ctx, g.opts.RetryPeriod))
	}
}

// reportObserved reports the error of a watch: it ends Run before the member has joined, and is logged later.
func (g *Group) reportObserved(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	select {
	case <-g.joined:
		g.log.Warn("the leases of the group cannot be observed", "error", err)
	default:
		g.fail(err)
	}
}

// handleEvents records the observed changes.
func (g *Group) handleEvents() {
	g.mu.Lock()
	events := g.events
	g.events = nil
	g.mu.Unlock()
	for _, event := range events {
		switch {
		case event.Type == dynamic.Synced:
			g.hasSynced = true
		case event.Object == nil:
		case event.Object.GetName() == g.name:
			g.handleAssignment(event)
		case event.Type == watch.Deleted:
			g.handleDeletion(event)
		default:
			g.handleMember(event.Object)
		}
	}
}

func (g *Group) handleAssignment(event dynamic.Change[leaseObject]) {
	known := g.assignment.lease
	switch {
	case event.Type == watch.Deleted && known != nil && known.GetUID() != event.Object.GetUID():
	case event.Type == watch.Deleted:
		g.setAssignment(nil)
	case known != nil && resourceversion.IsNewer(known.GetResourceVersion(), event.Object.GetResourceVersion()):
	default:
		g.setAssignment(event.Object)
	}
}

// setAssignment records the newest known assignment.
func (g *Group) setAssignment(lease *leaseObject) {
	next := observedAssignment{lease: lease, seenAt: time.Now()}
	if lease != nil {
		next.content, next.err = decodeAssignment(lease.GetAnnotations()[assignmentAnnotation])
		if known := g.assignment.lease; known != nil && known.GetUID() == lease.GetUID() {
			next.seenAt = g.assignment.seenAt
		}
	}
	g.assignment = next
}

func (g *Group) handleMember(lease *leaseObject) {
	m := g.members[lease.GetName()]
	if m != nil && m.uid == lease.GetUID() && m.version == lease.GetResourceVersion() {
		return
	}
	holder, _, _ := unstructured.Get[string](lease, "spec", "holderIdentity")
	g.members[lease.GetName()] = &observedMember{
		uid: lease.GetUID(), version: lease.GetResourceVersion(), renewed: renewTime(lease), isLeaving: holder == "", seenAt: time.Now(),
	}
}

func renewTime(lease *leaseObject) string {
	text, _, _ := unstructured.Get[string](lease, "spec", "renewTime")
	return text
}

// handleDeletion records the absence of a member's Lease. If its final state is the observed one, the member's last renewal is at least
// as old as the observation.
func (g *Group) handleDeletion(event dynamic.Change[leaseObject]) {
	m := g.members[event.Object.GetName()]
	if m == nil || m.isGone {
		return
	}
	if event.Object.GetName() == g.memberName() {
		g.nextRound = time.Time{} // notice it at once
	}
	m.isGone = true
	m.freeAt = time.Now().Add(g.opts.LeaseDuration)
	if !event.FinalStateUnknown && m.renewed == renewTime(event.Object) {
		m.freeAt = m.seenAt.Add(g.opts.LeaseDuration)
	}
}

// isLive reports whether a member may get segments.
func (g *Group) isLive(name string) bool {
	if name == g.memberName() {
		return name != "" && !g.isDraining()
	}
	m := g.members[name]
	return m != nil && !m.isGone && !m.isLeaving && time.Since(m.seenAt) < g.opts.LeaseDuration
}

// live returns the names of the live members in ascending order.
func (g *Group) live() []string {
	names := []string{g.memberName()}
	for name := range g.members {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !g.isLive(name) })
}

func (g *Group) memberName() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.member
}

// updateUnowned measures the time during which a segment has no live owner.
func (g *Group) updateUnowned(live []string) {
	var since time.Time
	if g.assignment.lease != nil && g.assignment.err == nil {
		for _, s := range g.assignment.content.segments {
			m := g.members[s.owner]
			at := time.Now()
			switch {
			case slices.Contains(live, s.owner), m != nil && m.isLeaving && !m.isGone:
				continue
			case m != nil:
				at = m.seenAt
			case !g.unownedSince.IsZero():
				at = g.unownedSince
			}
			if since.IsZero() || at.Before(since) {
				since = at
			}
		}
	}
	switch {
	case since.IsZero():
		g.unownedBefore += g.unownedNow(time.Now())
		g.unownedSince = time.Time{}
	case g.unownedSince.IsZero() || since.Before(g.unownedSince):
		g.unownedSince = since
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.health.Members = live
	g.health.Unowned = g.unownedBefore + g.unownedNow(time.Now())
}

func (g *Group) unownedNow(now time.Time) time.Duration {
	if g.unownedSince.IsZero() {
		return 0
	}
	return now.Sub(g.unownedSince)
}

// newLease returns a Lease of the group.
func (g *Group) newLease(name string) *leaseObject {
	lease := &leaseObject{Object: map[string]any{}}
	lease.SetName(name)
	lease.SetLabels(map[string]string{groupLabel: g.name})
	return lease
}

func timestamp(t time.Time) string { return t.UTC().Format(metav1.RFC3339Micro) }
