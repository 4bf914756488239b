package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/internal/retry"
)

// lead calls lead while the Lease is renewed.
func (c *candidate) lead(ctx context.Context, lead func(context.Context, int64) error) error {
	// held ends with the Lease. The Lease is renewed until lead returns, even if ctx has ended.
	held, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lose(nil)
	leading, cancel := context.WithCancelCause(fence.WithCheck(context.WithValue(ctx, leaseKey{}, held), c.checkDeadline))
	defer cancel(nil)
	var once sync.Once // the deadline may pass while a renewal finds the Lease lost
	c.loseLease = func(cause error) {
		once.Do(func() {
			lose(cause)
			cancel(cause)
			c.log.Error("the leader lease is lost", "error", cause)
		})
	}
	renewing, stop := context.WithCancel(held)
	var renewal sync.WaitGroup
	renewal.Go(func() { c.renew(renewing) })
	// If lead panics, its work may be unfinished: the Lease is then not released.
	defer renewal.Wait()
	defer stop()
	err := lead(leading, c.term.Transitions)
	stop()
	renewal.Wait()
	lost := context.Cause(held)
	if lost == nil {
		c.release(context.WithoutCancel(ctx))
		return err
	}
	if err == nil || isEnd(err) {
		return lost
	}
	return errors.Join(lost, err)
}

// isEnd reports whether err wraps nothing but the end of lead's ctx or of the Lease.
func isEnd(err error) bool {
	switch wrapper := err.(type) { //nolint:errorlint // each level is examined
	case *cache.PanicError:
		return false
	case interface{ Unwrap() []error }:
		parts := wrapper.Unwrap()
		if len(parts) == 0 {
			return false
		}
		isLoss := parts[0] == ErrLeaseLost //nolint:errorlint // with its reason
		return isLoss || !slices.ContainsFunc(parts, func(part error) bool { return !isEnd(part) })
	case interface{ Unwrap() error }:
		return isEnd(wrapper.Unwrap())
	default:
		return errors.Is(err, ErrLeaseLost) || errors.Is(err, context.Canceled)
	}
}

// renew renews the Lease until ctx ends or the Lease is lost.
func (c *candidate) renew(ctx context.Context) {
	// The timer also fires while a request hangs.
	deadline := time.AfterFunc(c.deadline.Remaining(), func() { c.loseLease(c.deadlineError()) })
	defer deadline.Stop()
	var lasted time.Duration // the last attempt: its time counts for the interval
	for {
		if retry.Sleep(ctx, retry.Jitter(ctx, min(c.opts.RetryPeriod, max(c.deadline.Remaining(), 0)))-lasted) != nil {
			return
		}
		remaining := c.deadline.Remaining()
		if remaining <= 0 {
			c.loseLease(c.deadlineError())
			return
		}
		attemptCtx, cancel := context.WithTimeout(ctx, min(remaining, fence.RequestTimeout(c.opts.RenewDeadline, c.opts.RetryPeriod)))
		began := time.Now()
		err := c.tryRenew(attemptCtx)
		cancel()
		lasted = time.Since(began)
		if errors.Is(err, ErrLeaseLost) {
			c.loseLease(err)
			return
		}
		if err == nil {
			deadline.Reset(c.deadline.Remaining())
		}
		if ctx.Err() == nil {
			c.logFailure("the leader lease cannot be renewed", err)
		}
		c.renewErr.Store(&err)
	}
}

// checkDeadline returns an error after the deadline, even if no timer has fired yet.
func (c *candidate) checkDeadline() error {
	if c.deadline.Remaining() > 0 {
		return nil
	}
	return c.deadlineError()
}

func (c *candidate) deadlineError() error {
	err := fmt.Errorf("%w: not renewed within %s", ErrLeaseLost, c.opts.RenewDeadline)
	if last := c.renewErr.Load(); last != nil && *last != nil {
		err = fmt.Errorf("%w: %w", err, *last)
	}
	return err
}

// tryRenew renews the Lease if it is still of this candidate's term, even if its remaining fields were changed.
func (c *candidate) tryRenew(ctx context.Context) error {
	err := c.update(ctx)
	if retry.IsConflict(err) {
		if err = c.reread(ctx); err == nil {
			err = c.update(ctx)
		}
	}
	if retry.IsObjectNotFound(err) {
		return fmt.Errorf("%w: deleted", ErrLeaseLost)
	}
	return err
}

// reread reads the Lease. It must be of this candidate's term.
func (c *candidate) reread(ctx context.Context) error {
	lease, err := c.leases.Get(ctx, c.name, nil)
	if err != nil {
		return err
	}
	observed, err := c.observe(lease)
	if err != nil {
		return err
	}
	if !c.isOurs(observed) {
		lost := fmt.Errorf("%w: held by %q", ErrLeaseLost, observed.Holder)
		if panicErr := c.setLeader(observed.Holder); panicErr != nil {
			return fmt.Errorf("%w; meanwhile %w", lost, panicErr)
		}
		return lost
	}
	c.lease = lease
	return nil
}

// maxReleaseAttempts limits the attempts of a release after conflicts.
const maxReleaseAttempts = 10

// release frees the Lease for new candidates. If that fails, they wait until it has expired.
func (c *candidate) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.RenewDeadline)
	defer cancel()
	for range maxReleaseAttempts {
		now := timestamp(time.Now())
		free := record{DurationSeconds: 1, Acquired: now, Renewed: now, Transitions: c.term.Transitions}
		_, err := c.leases.Update(ctx, free.applyTo(c.lease), nil)
		if err == nil {
			c.log.Info("the leader lease is released")
			return
		}
		if retry.IsConflict(err) {
			err = c.reread(ctx)
		}
		if err != nil {
			c.log.Warn("the leader lease cannot be released", "error", err)
			return
		}
	}
}
