// Package fence stops work under a lease at the lease's deadline: a different process may do the same work afterwards.
package fence

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// CheckDurations returns an error unless the deadline is before the expiry of the Lease, and a renewal, with its jitter of a half, before the
// deadline.
func CheckDurations(leaseDuration, renewDeadline, retryPeriod time.Duration) error {
	if retryPeriod <= 0 || renewDeadline >= leaseDuration || retryPeriod+retryPeriod/2 >= renewDeadline {
		return fmt.Errorf("LeaseDuration %s must be more than RenewDeadline %s, and that more than 1.5 times RetryPeriod %s",
			leaseDuration, renewDeadline, retryPeriod)
	}
	return nil
}

// RequestTimeout returns the timeout of a renewal: two renewals can fail before the deadline.
func RequestTimeout(renewDeadline, retryPeriod time.Duration) time.Duration {
	return (renewDeadline - retryPeriod) / 2
}

// Deadline is the end of the work under a lease: a duration after the last successful renewal was sent. Without a renewal it has
// passed. It is safe for concurrent use.
type Deadline struct {
	duration time.Duration

	mu     sync.Mutex
	sentAt time.Time
}

// NewDeadline returns a deadline at a duration after each renewal.
func NewDeadline(duration time.Duration) *Deadline { return &Deadline{duration: duration} }

// Renew records a successful renewal, sent at sentAt.
func (d *Deadline) Renew(sentAt time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sentAt = sentAt
}

// Remaining returns the time until the deadline, by the larger of the wall clock's and the monotonic clock's progress. The wall
// clock may be set back, and the monotonic clock may stop while the machine is suspended.
func (d *Deadline) Remaining() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sentAt.IsZero() {
		return 0
	}
	now := time.Now()
	return d.duration - max(now.Sub(d.sentAt), now.Round(0).Sub(d.sentAt.Round(0)))
}

// checkKey is the context key of a check.
type checkKey struct{}

// WithCheck returns a ctx whose requests are sent only while check returns nil. Checks of ctx itself remain.
func WithCheck(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, checkKey{}, func() error {
		if err := Check(ctx); err != nil {
			return err
		}
		return check()
	})
}

// Check returns the error of ctx's checks. It is called right before a request is sent: after a suspension, a ctx may end later than
// its deadline.
func Check(ctx context.Context) error {
	if check, ok := ctx.Value(checkKey{}).(func() error); ok {
		return check()
	}
	return nil
}
