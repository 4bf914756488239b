package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// tenure is the time for which a candidate leads.
type tenure struct {
	*candidate
	lose func(why error)

	mu      sync.Mutex
	trouble error // why the last renewal failed
}

// hold calls lead while the Lease is renewed.
func (c *candidate) hold(ctx context.Context, lead func(context.Context, int64) error) error {
	// The Lease is renewed until lead has finished, also when ctx has ended; sure ends when it is not surely ours any more.
	sure, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lose(nil)
	leading, end := context.WithCancelCause(context.WithValue(ctx, leaseKey{}, sure))
	defer end(nil)
	var once sync.Once // the deadline may pass while a renewal finds the Lease lost
	t := &tenure{candidate: c, lose: func(why error) {
		once.Do(func() {
			lose(why)
			end(why)
			c.log.Error("the leader lease is lost", "error", why)
		})
	}}
	renewing, stop := context.WithCancel(sure)
	var renewal sync.WaitGroup
	renewal.Go(func() { t.renew(renewing) })
	// If lead panics, who knows what it has left: the Lease is then not released.
	defer renewal.Wait()
	defer stop()
	err := lead(leading, c.term.transitions)
	stop()
	renewal.Wait()
	lost := context.Cause(sure)
	if lost == nil {
		c.release(context.WithoutCancel(ctx))
		return err
	}
	var panicked *PanicError
	if err == nil || !errors.As(err, &panicked) && (errors.Is(err, ErrLeaseLost) || errors.Is(err, context.Canceled)) {
		return lost
	}
	return errors.Join(lost, err)
}

// renew keeps the Lease until ctx ends, or loses it.
func (t *tenure) renew(ctx context.Context) {
	// Whatever a request may hang in, the tenure ends in time.
	alarm := time.AfterFunc(t.left(), func() { t.lose(t.late()) })
	defer alarm.Stop()
	for {
		if retry.Sleep(ctx, retry.Jitter(min(t.opts.RetryPeriod, max(t.left(), 0)))) != nil {
			return
		}
		left := t.left()
		if left <= 0 {
			t.lose(t.late())
			return
		}
		within, cancel := context.WithTimeout(ctx, left)
		err := t.renewOnce(within)
		cancel()
		if errors.Is(err, ErrLeaseLost) {
			t.lose(err)
			return
		}
		if err == nil {
			alarm.Reset(t.left())
		}
		if ctx.Err() == nil {
			t.logFailure("the leader lease cannot be renewed", err)
		}
		t.mu.Lock()
		t.trouble = err
		t.mu.Unlock()
	}
}

// late says that the renew deadline has passed.
func (t *tenure) late() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trouble == nil {
		return fmt.Errorf("%w: it was not renewed within %s", ErrLeaseLost, t.opts.RenewDeadline)
	}
	return fmt.Errorf("%w: it was not renewed within %s: %w", ErrLeaseLost, t.opts.RenewDeadline, t.trouble)
}

// renewOnce renews the Lease, whatever else was changed in it, while it is of our term.
func (c *candidate) renewOnce(ctx context.Context) error {
	err := c.write(ctx)
	if retry.IsConflict(err) {
		if err = c.reread(ctx); err == nil {
			err = c.write(ctx)
		}
	}
	if retry.IsObjectNotFound(err) {
		return fmt.Errorf("%w: somebody deleted it", ErrLeaseLost)
	}
	return err
}

// reread reads the Lease, which must be of our term.
func (c *candidate) reread(ctx context.Context) error {
	lease, err := c.leases.Get(ctx, c.name, nil)
	if err != nil {
		return err
	}
	now, err := c.look(lease)
	if err != nil {
		return err
	}
	if !c.ours(now) {
		lost := fmt.Errorf("%w: %q has it", ErrLeaseLost, now.holder)
		if hook := c.setLeader(now.holder); hook != nil {
			return fmt.Errorf("%w; meanwhile %w", lost, hook)
		}
		return lost
	}
	c.lease = lease
	return nil
}

// release lets others take the Lease at once. Where that fails they wait until it has expired.
func (c *candidate) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.RenewDeadline)
	defer cancel()
	for range maxPatches {
		now := stamp(time.Now())
		free := record{duration: time.Second, acquired: now, renewed: now, transitions: c.term.transitions}
		_, err := c.leases.Update(ctx, free.with(c.lease), nil)
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
