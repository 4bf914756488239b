package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// candidate is one call of Lead.
type candidate struct {
	leases *dynamic.Resource
	name   string
	opts   LeadOptions

	seen   record    // as the Lease was when it was read last
	seenAt time.Time // when it was first seen so, by the local clock: others' clocks do not count
	leader string    // whom NewLeader was told of
	asked  bool      // the server has answered once

	term  record               // ours, or the one that was asked for last: holder, acquired and transitions tell it
	lease *unstructured.Object // as the server has it, as far as we know
	sent  time.Time            // when the renewal was sent that succeeded last
}

// acquire waits until the Lease is ours.
func (c *candidate) acquire(ctx context.Context) error {
	for {
		within, cancel := context.WithTimeout(ctx, c.opts.RenewDeadline)
		held, err := c.tryAcquire(within)
		cancel()
		if held && ctx.Err() != nil {
			c.release(context.WithoutCancel(ctx))
		}
		if ctx.Err() != nil {
			return ended(ctx)
		}
		if held && c.left() > 0 {
			c.tell(c.opts.Identity)
			return nil
		}
		if err != nil {
			return err
		}
		if pause(ctx, c.opts.RetryPeriod) != nil {
			return ended(ctx)
		}
	}
}

func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// final passes on an error of which the server, or our own checks, will say the same again; others pass.
func final(err error) error {
	var refused *dynamic.RefusedError
	if errors.As(err, &refused) {
		return err
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Code >= http.StatusInternalServerError {
		return nil
	}
	switch status.ErrStatus.Code {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return nil
	}
	return err
}

// tryAcquire looks at the Lease, and takes it if it may. An error is one that will not pass.
func (c *candidate) tryAcquire(ctx context.Context) (held bool, err error) {
	lease, err := c.leases.Get(ctx, c.name, nil)
	if apierrors.IsNotFound(err) {
		return c.create(ctx)
	}
	if err != nil {
		if c.asked { // a server that has just started forbids what it will allow
			return false, nil
		}
		return false, final(err)
	}
	c.asked = true
	now, err := c.look(lease)
	if err != nil {
		return false, err
	}
	switch {
	case c.ours(now):
		// The answer to an earlier attempt was lost, or came too late.
	case now.holder != "" && time.Since(c.seenAt) < now.duration:
		c.tell(now.holder)
		return false, nil
	default:
		c.term = record{holder: c.opts.Identity, duration: c.opts.LeaseDuration, acquired: stamp(time.Now()), transitions: now.transitions + 1}
	}
	c.lease = lease
	err = c.write(ctx)
	return err == nil, final(ignoreNotFound(err))
}

// look notes what the Lease says, and when it began to.
func (c *candidate) look(lease *unstructured.Object) (record, error) {
	now, err := recordOf(lease)
	if err != nil {
		return now, fmt.Errorf("read the lease: %w", err)
	}
	if now != c.seen || c.seenAt.IsZero() {
		c.seen, c.seenAt = now, time.Now()
	}
	return now, nil
}

// ours tells if a record is of our term: the identity alone may be that of an earlier process.
func (c *candidate) ours(now record) bool {
	return c.term.holder != "" && now.holder == c.term.holder && now.acquired == c.term.acquired && now.transitions == c.term.transitions
}

func (c *candidate) tell(leader string) {
	if leader != c.leader && c.opts.NewLeader != nil {
		c.opts.NewLeader(leader)
	}
	c.leader = leader
}

// create makes the Lease, which is ours then.
func (c *candidate) create(ctx context.Context) (bool, error) {
	now := time.Now()
	c.term = record{holder: c.opts.Identity, duration: c.opts.LeaseDuration, acquired: stamp(now), renewed: stamp(now)}
	lease := &unstructured.Object{Object: map[string]any{}}
	lease.SetName(c.name)
	lease, err := c.leases.Create(ctx, c.term.with(lease), nil)
	if err != nil {
		return false, final(err)
	}
	c.asked, c.lease, c.sent = true, lease, now
	return true, nil
}

// write makes the Lease ours for another while.
func (c *candidate) write(ctx context.Context) error {
	now := time.Now()
	c.term.renewed = stamp(now)
	lease, err := c.leases.Update(ctx, c.term.with(c.lease), nil)
	if err != nil {
		return err
	}
	c.lease, c.sent = lease, now
	return nil
}

// left is for how long the Lease is surely ours, but for the time that the leader has to stop. A clock that goes on
// while the machine is suspended may be set, and one that cannot be set may stand still: the one that went further
// counts.
func (c *candidate) left() time.Duration {
	now := time.Now()
	return c.opts.RenewDeadline - max(now.Sub(c.sent), now.Round(0).Sub(c.sent.Round(0)))
}
