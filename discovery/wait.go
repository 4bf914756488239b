package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The delay between two refreshes is an eighth of what was waited so far, so that a change that comes late is seen late only
// in proportion, and a wait of hours costs few requests.
const (
	minWaitDelay = 10 * time.Millisecond
	maxWaitDelay = 10 * time.Second
)

// WaitFor returns the first snapshot for which isServed returns true, and which was requested after the call: the latest snapshot may
// have kinds that were deleted since. It refreshes until ctx ends: at once, and then every ten milliseconds at first and, as the
// wait lasts, down to every ten seconds. After its first refresh it also looks at every snapshot that others request: with
// [Client.Run] a new kind is seen as soon as its definition is. Concurrent waits share their refreshes, which count as those of
// [Client.Search] do. A client without a server has its one snapshot.
//
// isServed is called in this goroutine, possibly several times with the same snapshot. Failures of connections and of the
// server are retried. The error is that of ctx, with the last failure, or what the server rejects for good: a denial if it
// lasts for five seconds.
func (c *Client) WaitFor(ctx context.Context, isServed func(*Snapshot) bool) (*Snapshot, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var denials retry.Denials
	var failure error
	start := time.Now()
	isRefreshed := c.conn == nil
	for called := start; ; {
		latest, changed := c.latestAndChanged()
		switch {
		case isRefreshed && latest != nil && isServed(latest):
			return latest, nil
		case c.conn == nil:
			return nil, errOffline
		}
		select {
		case <-ctx.Done():
			return nil, c.waitError(ctx, failure)
		case <-changed:
			continue
		case <-timer.C:
		}
		err := c.refreshForWait(ctx, called)
		transient := denials.Transient(err)
		switch {
		case ctx.Err() != nil:
			return nil, c.waitError(ctx, failure)
		case retry.IsRejected(err) && !transient:
			return nil, err
		}
		isRefreshed = isRefreshed || err == nil
		failure = err
		called = time.Now() // a refresh of another call from now on counts as this wait's next refresh
		delay := min(max(called.Sub(start)/8, minWaitDelay), maxWaitDelay)
		timer.Reset(retry.Jitter(ctx, delay))
	}
}

// refreshForWait refreshes as far as the limiter allows, unless the snapshot was requested after called. It does not wait for
// group versions that have timed out a short time ago.
func (c *Client) refreshForWait(ctx context.Context, called time.Time) error {
	bounded, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	latest, err := c.limitedRefresh(bounded, called)
	if err != nil {
		return err
	}
	_, err = c.fetchLate(bounded, latest, func(gv schema.GroupVersion) bool { return !c.hasTimedOut(gv) })
	return err
}

// waitError returns the error of a wait whose ctx has ended after the failure of the last refresh, if any.
func (c *Client) waitError(ctx context.Context, failure error) error {
	if failure != nil {
		return fmt.Errorf("%w; the last refresh: %w", c.discoveryError(ctx, retry.ContextError(ctx)), failure)
	}
	return c.discoveryError(ctx, retry.ContextError(ctx))
}
