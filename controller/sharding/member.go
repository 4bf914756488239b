package sharding

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/shard"
)

// errGone reports a missing Lease of the member.
var errGone = errors.New("the member's lease was deleted")

// round renews the member's Lease, or creates it, and then reads the assignment. Both together extend the member's work.
func (g *Group) round(ctx context.Context) {
	g.nextRound = time.Now().Add(retry.Jitter(ctx, g.opts.RetryPeriod))
	requestCtx, cancel := g.withTimeout(ctx)
	defer cancel()
	sentAt := time.Now()
	err := g.renew(requestCtx)
	if err == nil {
		err = g.readAssignment(requestCtx)
	}
	switch {
	case errors.Is(err, errGone):
		g.lose(err)
		g.nextRound = time.Time{}
		g.signal()
	case err == nil:
		g.setOwned(g.ownedByAssignment(), sentAt)
	}
	g.recordRound(ctx, err)
}

// withTimeout returns a ctx for the requests of a round.
func (g *Group) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, fence.RequestTimeout(g.opts.RenewDeadline, g.opts.RetryPeriod))
}

func (g *Group) recordRound(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	isTransient := g.denials.Record(err)
	text := ""
	if err != nil {
		text = err.Error()
	}
	g.mu.Lock()
	g.lastErr = err
	g.mu.Unlock()
	isNew := text != g.lastFailure
	g.lastFailure = text
	if isNew && err != nil {
		g.log.Warn("the member's lease cannot be renewed", "error", err)
	}
	if err != nil && !g.isJoined && !isTransient && retry.IsRejected(err) && !retry.IsConflict(err) {
		g.fail(err)
	}
}

// renew renews the member's Lease. Without a Lease it creates one, under a new name. A Lease of an earlier request without a response is
// renewed, too: its observers count from that request.
func (g *Group) renew(ctx context.Context) error {
	if g.lease == nil {
		if isNew, err := g.join(ctx); isNew || err != nil {
			return err
		}
	}
	g.applySpec(g.lease)
	lease, err := g.leases.Update(ctx, g.lease, nil)
	if retry.IsConflict(err) {
		if err = g.reread(ctx); err == nil {
			g.applySpec(g.lease)
			lease, err = g.leases.Update(ctx, g.lease, nil)
		}
	}
	switch {
	case retry.IsObjectNotFound(err):
		return errGone
	case err != nil:
		return err
	}
	g.lease = lease
	return nil
}

// applySpec sets the spec of a member's Lease, renewed now. A draining member removes the holder.
func (g *Group) applySpec(lease *leaseObject) {
	spec, _ := lease.Object["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
		lease.Object["spec"] = spec
	}
	g.isLeaving = g.isDraining()
	spec["holderIdentity"] = g.opts.Identity
	if g.isLeaving {
		spec["holderIdentity"] = ""
	}
	spec["leaseDurationSeconds"] = int64((g.opts.LeaseDuration + time.Second - 1) / time.Second)
	spec["renewTime"] = timestamp(time.Now())
}

// reread reads the member's Lease, which may have been renewed by a request without a response.
func (g *Group) reread(ctx context.Context) error {
	lease, err := g.leases.Get(ctx, g.lease.GetName(), nil)
	if err == nil && lease.GetUID() != g.lease.GetUID() {
		return errGone
	}
	if err == nil {
		g.lease = lease
	}
	return err
}

func (g *Group) join(ctx context.Context) (isNew bool, err error) {
	if g.isDraining() {
		return false, errors.New("the member leaves")
	}
	lease, isNew, err := g.createLease(ctx)
	if err != nil {
		return false, err
	}
	g.lease = lease
	g.joining = ""
	g.mu.Lock()
	g.member = lease.GetName()
	g.mu.Unlock()
	g.log.Info("joined", "member", lease.GetName())
	return isNew, nil
}

// createLease creates a Lease with a new name. If an earlier response was lost, it returns that Lease. It never creates a name twice: the
// other members may know that the first Lease was deleted.
func (g *Group) createLease(ctx context.Context) (lease *leaseObject, isNew bool, err error) {
	if g.joining != "" {
		lease, err = g.leases.Get(ctx, g.joining, nil)
		if !retry.IsObjectNotFound(err) {
			return lease, false, err
		}
	}
	g.joining = g.name + "-" + retry.RandomName(ctx)
	lease = g.newLease(g.joining)
	g.applySpec(lease)
	lease, err = g.leases.Create(ctx, lease, nil)
	return lease, true, err
}

// lose ends the membership.
func (g *Group) lose(cause error) {
	g.lease = nil
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log.Error("the member's lease is lost: its work is canceled, and it joins again", "member", g.member, "error", cause)
	g.deadline.Renew(time.Time{})
	g.health.Lost += len(g.owned)
	g.owned = nil
	g.member = ""
	g.cancelTasks(shard.All(), errLost("%w", cause))
	g.updateHeld()
}

// readAssignment reads the assignment from the server.
func (g *Group) readAssignment(ctx context.Context) error {
	lease, err := g.leases.Get(ctx, g.name, nil)
	if retry.IsObjectNotFound(err) {
		lease = nil
		err = nil
	}
	if err != nil {
		return err
	}
	g.setAssignment(lease)
	return nil
}

// ownedByAssignment returns the member's segments in the newest known assignment.
func (g *Group) ownedByAssignment() shard.Ranges {
	if g.assignment.lease == nil || g.assignment.err != nil {
		return nil
	}
	return g.assignment.content.ownedBy(g.memberName())
}

// maxLeaveAttempts limits the attempts to hand over the last segments.
const maxLeaveAttempts = 10

// leave hands over all segments and deletes the member's Lease, after the work has ended. If that fails, the other members wait until it
// has expired.
func (g *Group) leave(ctx context.Context) {
	if g.lease == nil {
		return
	}
	g.mu.Lock()
	g.cancelTasks(shard.All(), errLost("the member has left the group"))
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, g.opts.RenewDeadline)
	defer cancel()
	err := g.readAssignment(ctx)
	for range maxLeaveAttempts {
		if err == nil {
			if err = g.release(ctx); err == nil {
				break
			}
		}
		if retry.Sleep(ctx, retry.Jitter(ctx, g.opts.RetryPeriod/10)) != nil {
			break
		}
		err = g.readAssignment(ctx)
	}
	if err == nil {
		uid := g.lease.GetUID()
		_, err = g.leases.Delete(ctx, g.lease.GetName(), &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		g.log.Warn("the member cannot leave the group: its lease will expire", "error", err)
		return
	}
	g.log.Info("left", "member", g.lease.GetName())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.member = ""
	g.owned = nil
	g.held = nil
}
