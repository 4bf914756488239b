package sharding

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/shard"
)

// coordinator has the state of the coordinator's goroutine. It sends all requests but the watch. It is alone in using it.
type coordinator struct {
	lease         *leaseObject // the member's own; nil if there is none
	joining       string       // the name of a Lease that may have been created
	nextRound     time.Time
	nextPlan      time.Time // no plan is written before
	isJoined      bool
	isLeaving     bool // the last renewal has announced the end of the membership
	denials       retry.Denials
	lastFailure   string // the text of the last logged error
	hasSynced     bool   // the group's Leases have been listed
	assignment    observedAssignment
	members       map[string]*observedMember
	weights       weights
	weighAt       time.Time // when the namespaces are to be read again
	unownedSince  time.Time
	unownedBefore time.Duration // of earlier times without an owner
}

func newCoordinator() coordinator { return coordinator{members: map[string]*observedMember{}} }

// weighInterval is the interval of reading the namespaces.
const weighInterval = time.Minute

// coordinate renews the member's Lease, hands over segments and plans, until ctx ends.
func (g *Group) coordinate(ctx context.Context) {
	timer := time.NewTimer(g.opts.RetryPeriod)
	defer timer.Stop()
	for ctx.Err() == nil {
		g.step(ctx)
		next := g.nextRound
		if g.nextPlan.After(time.Now()) && g.nextPlan.Before(next) {
			next = g.nextPlan
		}
		wait := time.Until(next)
		if wait <= 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-g.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

func (g *Group) step(ctx context.Context) {
	g.handleEvents()
	if g.isRoundDue() {
		g.round(ctx)
	}
	if g.lease != nil && g.hasSynced && !g.isJoined { // Run's work begins
		g.isJoined = true
		close(g.joined)
	}
	// The round after these requests must not be late, however many they are: what is left is done after it.
	requestCtx, cancel := g.withTimeout(ctx)
	defer cancel()
	if g.lease != nil {
		if err := g.release(requestCtx); err != nil && ctx.Err() == nil {
			g.log.Debug("segments cannot be handed over", "error", err)
		}
	}
	live := g.live()
	g.updateUnowned(live)
	if g.lease != nil && g.hasSynced && len(live) > 0 && live[0] == g.memberName() {
		if err := g.lead(requestCtx, live); err != nil && ctx.Err() == nil {
			g.log.Debug("the assignment cannot be written", "error", err)
		}
	}
	g.callOnChange()
}

// isRoundDue reports whether the Lease is to be renewed: after the RetryPeriod, and at once if the observed segments of this member
// differ from those of the last round.
func (g *Group) isRoundDue() bool {
	if !time.Now().Before(g.nextRound) || g.lease != nil && g.isDraining() && !g.isLeaving {
		return true
	}
	g.mu.Lock()
	owned := g.owned
	g.mu.Unlock()
	return g.lease != nil && !slices.Equal(owned, g.ownedByAssignment())
}

// release hands over segments without work to their next owners. A draining member hands over all segments.
func (g *Group) release(ctx context.Context) error {
	if g.assignment.lease == nil || g.assignment.err != nil {
		return nil //nolint:nilerr // the member that plans replaces an assignment that cannot be read
	}
	member := g.memberName()
	isDraining := g.isDraining()
	// A segment is released until its owner is known to keep it, also after its handover: the round since then may have failed. An
	// update without a response may arrive later: it fails if the assignment has been changed.
	var kept shard.Ranges
	if !isDraining {
		kept = g.assignment.content.keptBy(member)
	}
	g.setKept(kept)
	isReleased := func(s segment) bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return s.owner == member && (isDraining || s.next != "" && s.next != member) && !g.isBusy(shard.Ranges{s.Range})
	}
	var released []shard.Range
	changed, differs := g.assignment.content.change(func(s *segment) {
		if isReleased(*s) {
			released = append(released, s.Range)
			s.owner = s.next
			s.next = ""
		}
	})
	if !differs {
		return nil
	}
	if err := g.write(ctx, changed); err != nil {
		return err
	}
	g.setReleased(shard.Union(released...))
	return nil
}

// write replaces the observed assignment.
func (g *Group) write(ctx context.Context, content assignment) error {
	ctx, cancel := g.withTimeout(ctx)
	defer cancel()
	lease := g.assignment.lease.DeepCopy()
	annotations := lease.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[assignmentAnnotation] = content.encode()
	lease.SetAnnotations(annotations)
	written, err := g.leases.Update(ctx, lease, nil)
	if err == nil {
		g.setAssignment(written)
		return nil
	}
	if retry.IsConflict(err) || retry.IsObjectNotFound(err) {
		if readErr := g.readAssignment(ctx); readErr == nil {
			g.signal()
		}
	}
	return err
}

// lead deletes the Leases of dead members and plans. Any member could do it: the updates exclude each other.
func (g *Group) lead(ctx context.Context, live []string) error {
	g.expireMembers(ctx)
	switch {
	case g.assignment.lease == nil:
		return g.createAssignment(ctx)
	case g.assignment.err != nil: // nobody can read it
		g.log.Error("the assignment is replaced", "error", g.assignment.err)
		return g.deleteAssignment(ctx)
	case !g.assignment.content.isSettled && time.Since(g.assignment.seenAt) < g.opts.LeaseDuration:
		return nil
	}
	if time.Now().Before(g.nextPlan) {
		return nil
	}
	g.readWeights(ctx)
	free := map[string]bool{"": false}
	current, _ := g.assignment.content.change(func(s *segment) {
		if _, isKnown := free[s.owner]; !isKnown {
			free[s.owner] = !g.isLive(s.owner) && g.isFree(ctx, s.owner)
		}
		if free[s.owner] {
			s.owner = ""
		}
	})
	planned := assignment{isSettled: true, segments: plan(current.segments, live, g.weights)}
	if slices.Equal(planned.segments, g.assignment.content.segments) && g.assignment.content.isSettled {
		g.forgetMembers()
		return nil
	}
	g.nextPlan = time.Now().Add(g.opts.RetryPeriod / 10) // two members that disagree about who plans must not write without a pause
	return g.write(ctx, planned)
}

// expireMembers deletes the Leases that were not renewed for LeaseDuration, by the monotonic clock of this process. It may stop while the
// machine is suspended, which only delays the deletion.
func (g *Group) expireMembers(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[name]
		if m.isGone || name == g.memberName() || time.Since(m.seenAt) < g.opts.LeaseDuration {
			continue
		}
		_, err := g.leases.Delete(ctx, name, &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &m.uid, ResourceVersion: &m.version},
		})
		switch {
		case err == nil:
			m.isGone = true
			m.freeAt = time.Now()
			g.log.Warn("a member has not renewed its lease: its segments are taken over", "member", name)
		case retry.IsConflict(err): // renewed
			m.seenAt = time.Now()
		case retry.IsObjectNotFound(err):
			m.isGone = true
			m.freeAt = time.Now().Add(g.opts.LeaseDuration)
		}
	}
}

// isFree reports whether the segments of a dead owner may be taken: its Lease is gone, for long enough.
func (g *Group) isFree(ctx context.Context, owner string) bool {
	m := g.members[owner]
	if m == nil { // its Lease was never observed
		m = &observedMember{isGone: true, freeAt: time.Now().Add(g.opts.LeaseDuration), seenAt: time.Now()}
		g.members[owner] = m
	}
	if !m.isGone || m.isFree || time.Now().Before(m.freeAt) {
		return m.isFree
	}
	lease, err := g.leases.Get(ctx, owner, nil)
	if err == nil {
		g.handleMember(lease)
	}
	m.isFree = retry.IsObjectNotFound(err)
	return m.isFree
}

// forgetMembers removes gone members without segments.
func (g *Group) forgetMembers() {
	for name, m := range g.members {
		if m.isGone && len(g.assignment.content.ownedBy(name)) == 0 {
			delete(g.members, name)
		}
	}
}

func (g *Group) createAssignment(ctx context.Context) error {
	lease := g.newLease(g.name)
	lease.SetAnnotations(map[string]string{assignmentAnnotation: newAssignment().encode()})
	created, err := g.leases.Create(ctx, lease, nil)
	if apierrors.IsAlreadyExists(err) {
		return g.readAssignment(ctx)
	}
	if err == nil {
		g.setAssignment(created)
	}
	return err
}

func (g *Group) deleteAssignment(ctx context.Context) error {
	lease := g.assignment.lease
	uid := lease.GetUID()
	version := lease.GetResourceVersion()
	_, err := g.leases.Delete(ctx, g.name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	g.setAssignment(nil)
	return err
}

// readWeights reads the namespaces.
func (g *Group) readWeights(ctx context.Context) {
	if g.opts.By != shard.Namespace || g.opts.Namespaces == nil || time.Now().Before(g.weighAt) {
		return
	}
	g.weighAt = time.Now().Add(weighInterval)
	namespaces, err := g.opts.Namespaces(ctx)
	if err != nil {
		g.log.Warn("the namespaces cannot be read", "error", err)
		return
	}
	g.weights = newWeights(namespaces)
}
