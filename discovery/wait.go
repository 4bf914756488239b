package discovery

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/retry"
)

// The delay between two refreshes is elapsed/8. A late change is seen late only in proportion, and a wait of hours costs few
// requests.
const (
	minWaitDelay = 10 * time.Millisecond
	maxWaitDelay = 10 * time.Second
)

// WaitForSnapshot returns the first snapshot accepted by isServed. The snapshot is never older than the call, because the latest
// snapshot may contain deleted kinds. WaitForSnapshot refreshes at once and then repeatedly until ctx ends. The delay grows from
// ten milliseconds to ten seconds. After its first refresh it also checks every snapshot published by concurrent calls: with
// [Client.Run] a new kind is seen as soon as its definition. Concurrent waits share refreshes. Refreshes count towards the rate
// limit of [Client.Search]. A client without a server checks its only snapshot.
//
// isServed is called in the caller's goroutine, possibly several times with the same snapshot. Connection failures and server
// errors are retried. WaitForSnapshot returns the error of ctx with the last failure, or a terminal rejection by the server. A
// denial (401 or 403) is terminal after five seconds.
func (c *Client) WaitForSnapshot(ctx context.Context, isServed func(*Snapshot) bool) (*Snapshot, error) {
	timer := time.NewTimer(maxWaitDelay)
	defer timer.Stop()
	var denials retry.Denials
	var failure error
	start := time.Now()
	isRefreshed := c.conn == nil
	isDue := true
	for called := start; ; {
		latest, changed := c.latestAndChanged()
		switch {
		case isRefreshed && latest != nil && isServed(latest):
			return latest, nil
		case c.conn == nil:
			return nil, errOffline
		}
		if !isDue {
			select {
			case <-ctx.Done():
				return nil, c.waitError(ctx, failure)
			case <-changed:
				continue
			case <-timer.C:
			}
		}
		isCurrent, err := c.refreshForWait(ctx, called)
		transient := denials.Record(err)
		switch {
		case ctx.Err() != nil:
			return nil, c.waitError(ctx, failure)
		case retry.IsRejected(err) && !transient:
			return nil, err
		}
		isRefreshed = isRefreshed || isCurrent
		failure = err
		called = time.Now() // a refresh by another call after this time counts as this wait's next refresh
		delay := min(max(called.Sub(start)/8, minWaitDelay), maxWaitDelay)
		timer.Reset(retry.Jitter(ctx, delay))
		isDue = false
	}
}

// refreshForWait refreshes within the rate limit, unless the latest snapshot was requested after called. It does not wait for
// group versions in timedOut. isCurrent is false after an error, and if the rate limit does not allow the refresh.
func (c *Client) refreshForWait(ctx context.Context, called time.Time) (isCurrent bool, err error) {
	bounded, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	isAllowed := true
	latest, err := c.refreshRoots(bounded, called, func() (bool, error) {
		isAllowed, err = c.allowRefresh(bounded)
		return isAllowed, err
	})
	if err != nil || !isAllowed {
		return false, err
	}
	_, err = c.fetchLate(bounded, latest, func(gv schema.GroupVersion) bool { return !c.hasTimedOut(gv) })
	return err == nil, err
}

// waitError returns the error of ctx, joined with the failure of the last refresh if there is one.
func (c *Client) waitError(ctx context.Context, failure error) error {
	if failure != nil {
		return fmt.Errorf("%w; the last refresh: %w", c.discoveryError(ctx, retry.ContextError(ctx)), failure)
	}
	return c.discoveryError(ctx, retry.ContextError(ctx))
}
