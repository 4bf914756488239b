package discovery

import (
	"context"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// refreshTimeout bounds each request of Run: a connection may be dead without an error.
const refreshTimeout = 30 * time.Second

// denialGrace is the time in which a starting server may deny a list or watch.
const denialGrace = 5 * time.Second

var runBackoff = retry.Backoff{Min: 200 * time.Millisecond, Max: 10 * time.Second}

// Run keeps the snapshot current until ctx ends. It watches CustomResourceDefinitions and APIServices and requests the changed
// groups. It also requests all groups every 30 to 36 seconds, because the resources of aggregated API servers change without an event.
// An unchanged server with aggregated discovery then returns two empty responses.
//
// Run retries connection failures and server errors. It returns the error of ctx or a terminal *apierrors.StatusError:
// apierrors.IsForbidden if the user may not list or watch both resources. A starting server denies all requests for a moment, so
// a denial is returned only after five seconds without a success. A new group is last in the order of groups until the next
// request for all groups, some seconds later.
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
	workers.Go(func() { cancel(c.refreshDirty(runCtx, &workers, dirty)) })
	workers.Wait()
	if ctx.Err() != nil {
		return retry.ContextError(ctx)
	}
	return context.Cause(runCtx)
}

// firstRefresh retries until the server returns a snapshot or a terminal error. Time-outs belong to a single attempt.
func (c *Client) firstRefresh(ctx context.Context) error {
	var denials retry.Denials
	for n := 1; ; n++ {
		err := c.refreshWithTimeout(ctx, allGroups)
		transient := denials.Record(err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return retry.WithContextError(ctx, err)
		case retry.IsRejected(err) && !transient:
			return err
		}
		if err := runBackoff.Wait(ctx, n); err != nil {
			return err
		}
	}
}

type refreshResult struct {
	group string
	err   error
}

// refreshDirty requests the groups received from dirty. Each group has its own worker, because a hanging request must not delay
// the remaining groups. It returns when ctx ends or the server denies discovery for more than five seconds. Errors of single
// requests are ignored: the next scheduled check tries again.
func (c *Client) refreshDirty(ctx context.Context, workers *sync.WaitGroup, dirty <-chan string) error {
	schedule := newDirtyGroups(time.Now())
	active := map[string]bool{} // group in flight → marked dirty meanwhile
	results := make(chan refreshResult)
	var denials retry.Denials
	timer := time.NewTimer(resyncInterval)
	defer timer.Stop()
	for {
		timer.Reset(schedule.delay(time.Now()))
		select {
		case <-ctx.Done():
			return retry.ContextError(ctx)
		case group := <-dirty:
			schedule.mark(group, time.Now())
		case result := <-results:
			if active[result.group] {
				schedule.mark(result.group, time.Now())
			}
			delete(active, result.group)
			transient := denials.Record(result.err)
			if result.group == allGroups && retry.IsDenied(result.err) {
				if !transient {
					return result.err
				}
				schedule.markAll(time.Now())
			}
		case <-timer.C:
			for _, group := range schedule.next(time.Now()) {
				if _, isActive := active[group]; isActive {
					active[group] = true
					continue
				}
				active[group] = false
				workers.Go(func() {
					result := refreshResult{group, c.refreshWithTimeout(ctx, group)}
					select {
					case results <- result:
					case <-ctx.Done():
					}
				})
			}
		}
	}
}

func (c *Client) refreshWithTimeout(ctx context.Context, group string) error {
	bounded, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if group == allGroups {
		_, err := c.Refresh(bounded)
		return err
	}
	return c.refreshGroup(bounded, group)
}
