package discovery

import (
	"context"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// refreshTimeout bounds one request of Run: a connection may be dead without an error.
const refreshTimeout = 30 * time.Second

var runBackoff = retry.Backoff{Min: 200 * time.Millisecond, Max: 10 * time.Second}

// Run keeps the snapshot current until ctx ends. It watches CustomResourceDefinitions and APIServices and requests the
// groups that they define, and every half minute all groups, because the resources of other API servers change without
// either; that costs two empty answers if nothing has changed.
//
// Run survives failures of connections and of the server. It returns the error of ctx, or a *apierrors.StatusError that
// retrying cannot cure: apierrors.IsForbidden if the user may not list or watch the two. A server that has just started
// denies everything for a moment, so a denial is returned only after five seconds of nothing else. A new group follows all
// others until all groups are requested again, some seconds later.
func (c *Client) Run(ctx context.Context) error {
	if c.conn == nil {
		return errOffline
	}
	if err := c.firstRefresh(ctx); err != nil {
		return err
	}
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dirty := make(chan string)
	var workers sync.WaitGroup
	for _, path := range watchedSources {
		workers.Go(func() {
			watcher := &sourceWatcher{client: c, path: path, dirty: dirty}
			cancel(watcher.run(runCtx))
		})
	}
	workers.Go(func() { cancel((&refresher{client: c, dirty: dirty}).run(runCtx)) })
	workers.Wait()
	if ctx.Err() != nil {
		return retry.ContextError(ctx)
	}
	return context.Cause(runCtx)
}

// firstRefresh retries until the server returns a snapshot or an error that is terminal.
func (c *Client) firstRefresh(ctx context.Context) error {
	var denials retry.Denials
	for n := 1; ; n++ {
		_, err := c.Refresh(ctx)
		transient := denials.Transient(err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return retry.WithContextError(ctx, err)
		case retry.IsTerminal(err) && !transient:
			return err
		}
		if err := runBackoff.Wait(ctx, n); err != nil {
			return err
		}
	}
}

// refresher requests the groups that are received from dirty, each in a goroutine of its own: one that hangs delays no
// other.
type refresher struct {
	client  *Client
	dirty   <-chan string
	denials retry.Denials
	// active holds the groups being requested, and whether they have become dirty again.
	active map[string]bool
}

type refreshResult struct {
	group string
	err   error
}

// run returns when ctx ends or the server denies discovery for longer than it takes to start. Other errors are ignored: the
// next scheduled check tries again.
func (r *refresher) run(ctx context.Context) error {
	schedule := newDirtyGroups(time.Now())
	timer := time.NewTimer(resyncInterval)
	defer timer.Stop()
	r.active = map[string]bool{}
	results := make(chan refreshResult)
	var requests sync.WaitGroup
	defer requests.Wait()
	for {
		timer.Reset(schedule.delay(time.Now()))
		select {
		case <-ctx.Done():
			return retry.ContextError(ctx)
		case group := <-r.dirty:
			schedule.mark(group, time.Now())
		case result := <-results:
			if err := r.handle(result, schedule); err != nil {
				return err
			}
		case <-timer.C:
			for _, group := range schedule.next(time.Now()) {
				if _, isActive := r.active[group]; isActive {
					r.active[group] = true
					continue
				}
				r.active[group] = false
				requests.Go(func() {
					result := refreshResult{group, r.client.refreshWithTimeout(ctx, group)}
					select {
					case results <- result:
					case <-ctx.Done():
					}
				})
			}
		}
	}
}

// handle returns an error only if it ends Run.
func (r *refresher) handle(result refreshResult, schedule *dirtyGroups) error {
	if r.active[result.group] {
		schedule.mark(result.group, time.Now())
	}
	delete(r.active, result.group)
	transient := r.denials.Transient(result.err)
	if result.group != allGroups || !retry.IsDenied(result.err) {
		return nil
	}
	if !transient {
		return result.err
	}
	schedule.markAll(time.Now())
	return nil
}

// refreshWithTimeout requests a group or allGroups.
func (c *Client) refreshWithTimeout(ctx context.Context, group string) error {
	bounded, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if group == allGroups {
		_, err := c.Refresh(bounded)
		return err
	}
	return c.refreshGroup(bounded, group)
}
