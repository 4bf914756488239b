package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// candidate is one call of Lead.
type candidate struct {
	leases *dynamic.Resource
	name   string
	opts   LeadOptions
	log    *slog.Logger

	seen     record    // as the Lease was when it was read last
	seenAt   time.Time // when it was first seen so, by the local clock: others' clocks do not count
	leader   string    // whom NewLeader was called with
	answered bool      // the server has answered once
	denials  retry.Denials
	failure  string // the error that was logged last

	term  record               // ours, or the one that was asked for last: holder, acquired and transitions tell it
	lease *unstructured.Object // as the server has it, as far as we know
	sent  time.Time            // when the renewal was sent that succeeded last
}

// acquire waits until the Lease is ours.
func (c *candidate) acquire(ctx context.Context) error {
	for {
		if held, err := c.attempt(ctx); held || err != nil {
			return err
		}
		if err := retry.Sleep(ctx, retry.Jitter(c.opts.RetryPeriod)); err != nil {
			return err
		}
	}
}

// attempt tries once to acquire the Lease. Its error is one that will not pass.
func (c *candidate) attempt(ctx context.Context) (held bool, err error) {
	within, cancel := context.WithTimeout(ctx, c.opts.RenewDeadline)
	held, err = c.tryAcquire(within)
	cancel()
	if held && ctx.Err() == nil && c.left() > 0 {
		if err = c.setLeader(c.opts.Identity); err == nil {
			return true, nil
		}
	}
	if held && (ctx.Err() != nil || err != nil) {
		c.release(context.WithoutCancel(ctx))
	}
	transient := c.denials.Transient(err)
	switch {
	case ctx.Err() != nil:
		return false, retry.ContextError(ctx)
	case err != nil && !transient && !c.mayPass(err):
		return false, err
	}
	c.logFailure("the leader lease cannot be acquired", err)
	return false, nil
}

// mayPass reports whether another attempt to acquire the Lease may succeed.
func (c *candidate) mayPass(err error) bool {
	var hook *PanicError
	if errors.As(err, &hook) {
		return false
	}
	var reading *readError
	return !isTerminal(err) || c.answered && (errors.As(err, &reading) || retry.IsPathNotFound(err))
}

// logFailure logs an error once, and again when it has changed.
func (c *candidate) logFailure(what string, err error) {
	text := ""
	if err != nil && !retry.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // others stand, too
		text = err.Error()
	}
	if text != "" && text != c.failure {
		c.log.Warn(what, "error", err)
	}
	c.failure = text
}

// readError is a failure to read the Lease. It passes once the server has answered: others may lead meanwhile.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

// tryAcquire reads the Lease, and takes it if it may.
func (c *candidate) tryAcquire(ctx context.Context) (held bool, err error) {
	lease, err := c.leases.Get(ctx, c.name, nil)
	if retry.IsObjectNotFound(err) {
		return c.create(ctx)
	}
	if err != nil {
		return false, &readError{err}
	}
	c.answered = true
	now, err := c.look(lease)
	if err != nil {
		return false, retry.Terminal(err)
	}
	switch {
	case c.ours(now):
		// The answer to an earlier attempt was lost, or came too late.
	case now.holder != "" && time.Since(c.seenAt) < now.duration:
		return false, c.setLeader(now.holder)
	default:
		c.term = record{holder: c.opts.Identity, duration: c.opts.LeaseDuration, acquired: stamp(time.Now()), transitions: now.transitions + 1}
	}
	c.lease = lease
	err = c.write(ctx)
	return err == nil, ignoreObjectNotFound(err)
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

// ours reports whether a record is of our term: the identity alone may be that of an earlier process.
func (c *candidate) ours(now record) bool {
	return c.term.holder != "" && now.holder == c.term.holder && now.acquired == c.term.acquired && now.transitions == c.term.transitions
}

// setLeader notes who leads and calls the NewLeader hook when that has changed. Its error is a panic of the hook.
func (c *candidate) setLeader(leader string) (err error) {
	defer contain(&err, "LeadOptions.NewLeader")
	changed := leader != c.leader
	c.leader = leader
	if !changed {
		return nil
	}
	if leader != c.opts.Identity {
		c.log.Info("another candidate leads", "leader", leader)
	}
	if c.opts.NewLeader != nil {
		c.opts.NewLeader(leader)
	}
	return nil
}

// create makes the Lease, which is ours then.
func (c *candidate) create(ctx context.Context) (bool, error) {
	now := time.Now()
	c.term = record{holder: c.opts.Identity, duration: c.opts.LeaseDuration, acquired: stamp(now), renewed: stamp(now)}
	lease := &unstructured.Object{Object: map[string]any{}}
	lease.SetName(c.name)
	lease, err := c.leases.Create(ctx, c.term.with(lease), nil)
	if err != nil {
		return false, err
	}
	c.answered, c.lease, c.sent = true, lease, now
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
