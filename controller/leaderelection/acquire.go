package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// candidate is the state of a Run.
type candidate struct {
	leases *dynamic.Resource
	name   string
	opts   Options
	log    *slog.Logger

	observed    record    // the last read state of the Lease
	observedAt  time.Time // when observed last changed, by the local clock: remote clocks do not count
	leader      string    // the last argument of OnNewLeader
	responded   bool      // the server has responded once
	denials     retry.Denials
	lastFailure string // the text of the last logged error

	term     record               // the held or last requested term; see isOurs
	lease    *unstructured.Object // the last known state on the server
	deadline *fence.Deadline

	loseLease func(cause error)
	renewErr  atomic.Pointer[error] // error of the last renewal, which may be nil
}

func (c *candidate) acquire(ctx context.Context) error {
	for {
		if held, err := c.attempt(ctx); held || err != nil {
			return err
		}
		if err := retry.Sleep(ctx, retry.Jitter(ctx, c.opts.RetryPeriod)); err != nil {
			return err
		}
	}
}

// attempt tries once to acquire the Lease. It only returns errors that end Run.
func (c *candidate) attempt(ctx context.Context) (held bool, err error) {
	attemptCtx, cancel := context.WithTimeout(ctx, c.opts.RenewDeadline)
	held, err = c.tryAcquire(attemptCtx)
	cancel()
	if held && ctx.Err() == nil && c.deadline.Remaining() > 0 {
		if err = c.setLeader(c.opts.Identity); err == nil {
			return true, nil
		}
	}
	if held && (ctx.Err() != nil || err != nil) {
		c.release(context.WithoutCancel(ctx))
	}
	transient := c.denials.Record(err)
	switch {
	case ctx.Err() != nil:
		return false, retry.ContextError(ctx)
	case err != nil && !transient && !c.isRetryable(err):
		return false, err
	}
	c.logFailure("the leader lease cannot be acquired", err)
	return false, nil
}

// isRetryable reports whether a new attempt to acquire the Lease may succeed.
func (c *candidate) isRetryable(err error) bool {
	var read *readError
	switch {
	case c.responded && (errors.As(err, &read) || retry.IsPathNotFound(err)):
		return true
	case retry.IsConflict(err), apierrors.IsAlreadyExists(err), errors.Is(err, context.DeadlineExceeded): // of the attempt
		return true
	default:
		return !retry.IsTerminal(err)
	}
}

// logFailure logs an error if it differs from the last error. Conflicts of candidates are not logged.
func (c *candidate) logFailure(message string, err error) {
	text := ""
	if err != nil && !retry.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		text = err.Error()
	}
	if text != "" && text != c.lastFailure {
		c.log.Warn(message, "error", err)
	}
	c.lastFailure = text
}

// readError is a failure to read the Lease. It is retryable once the server has responded: a different candidate may lead
// meanwhile.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

// tryAcquire reads the Lease, and takes it if it is free, expired or of this candidate's term.
func (c *candidate) tryAcquire(ctx context.Context) (held bool, err error) {
	lease, err := c.leases.Get(ctx, c.name, nil)
	if retry.IsObjectNotFound(err) {
		return c.create(ctx)
	}
	if err != nil {
		return false, &readError{err}
	}
	c.responded = true
	observed, err := c.observe(lease)
	if err != nil {
		return false, retry.Terminal(err)
	}
	switch {
	case c.isOurs(observed):
		// The response to an earlier attempt was lost or late.
	case observed.Holder != "" && time.Since(c.observedAt) < time.Duration(observed.DurationSeconds)*time.Second:
		return false, c.setLeader(observed.Holder)
	default:
		c.term = record{Holder: c.opts.Identity, DurationSeconds: int64(c.opts.LeaseDuration / time.Second), Acquired: timestamp(time.Now()), Transitions: observed.Transitions + 1}
	}
	c.lease = lease
	err = c.update(ctx)
	if retry.IsObjectNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// observe records the content of the Lease and when it changed.
func (c *candidate) observe(lease *unstructured.Object) (record, error) {
	decoded, err := unstructured.As[struct {
		Spec record `json:"spec"`
	}](lease)
	if err != nil {
		return record{}, fmt.Errorf("read the lease: %w", err)
	}
	if decoded.Spec != c.observed {
		c.observed = decoded.Spec
		c.observedAt = time.Now()
	}
	return c.observed, nil
}

// isOurs reports whether a record is of this candidate's term. The identity alone does not suffice: an earlier process may have
// used it.
func (c *candidate) isOurs(r record) bool {
	return c.term.Holder != "" && r.Holder == c.term.Holder && r.Acquired == c.term.Acquired && r.Transitions == c.term.Transitions
}

// setLeader calls OnNewLeader if the leader has changed. An error is a panic of OnNewLeader.
func (c *candidate) setLeader(leader string) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = retry.Terminal(&cache.PanicError{Where: "Options.OnNewLeader", Value: value, Stack: debug.Stack()})
		}
	}()
	if leader == c.leader {
		return nil
	}
	c.leader = leader
	if leader != c.opts.Identity {
		c.log.Info("another candidate leads", "leader", leader)
	}
	if c.opts.OnNewLeader != nil {
		c.opts.OnNewLeader(leader)
	}
	return nil
}

func (c *candidate) create(ctx context.Context) (bool, error) {
	now := time.Now()
	c.term = record{Holder: c.opts.Identity, DurationSeconds: int64(c.opts.LeaseDuration / time.Second), Acquired: timestamp(now), Renewed: timestamp(now)}
	lease := &unstructured.Object{Object: map[string]any{}}
	lease.SetName(c.name)
	lease, err := c.leases.Create(ctx, c.term.applyTo(lease), nil)
	if err != nil {
		return false, err
	}
	c.responded = true
	c.lease = lease
	c.deadline.Renew(now)
	return true, nil
}

// update writes this candidate's term into the Lease, renewed now.
func (c *candidate) update(ctx context.Context) error {
	now := time.Now()
	c.term.Renewed = timestamp(now)
	lease, err := c.leases.Update(ctx, c.term.applyTo(c.lease), nil)
	if err != nil {
		return err
	}
	c.lease = lease
	c.deadline.Renew(now)
	return nil
}
