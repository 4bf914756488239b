package discovery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// definers are the resources whose objects decide what a server serves. Their names end in the group that they are
// about: widgets.example.com, v1.example.com.
var definers = []string{
	definitionsPath,
	"/apis/apiregistration.k8s.io/v1/apiservices",
}

// wholeTimeout bounds how long Live waits for an answer to one refresh.
const wholeTimeout = 30 * time.Second

var liveBackoff = retry.Backoff{Min: 200 * time.Millisecond, Max: 10 * time.Second}

// Live keeps the snapshot current until ctx ends: it watches CustomResourceDefinitions and APIServices and asks anew
// for the groups that they are about, and every half minute for the whole, which costs two empty answers where nothing
// has changed: the resources of other API servers change without either.
//
// It survives whatever happens to its connections and to the server, and returns ctx's error, or the server's where
// trying again is no use: a *apierrors.StatusError, which apierrors.IsForbidden knows where the user may not list or
// watch those two. A server that has just started denies everything for a moment: Live returns a denial only after five
// seconds of nothing else. A new group stands behind all others until the whole is asked for again, some seconds later.
func (c *Client) Live(ctx context.Context) error {
	if c.conn == nil {
		return errOffline
	}
	if err := c.refreshUntilAnswered(ctx); err != nil {
		return err
	}
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	touched := make(chan string)
	var all sync.WaitGroup
	for _, path := range definers {
		all.Go(func() {
			watcher := &definerWatcher{client: c, path: path, touched: touched, known: map[string]string{}}
			cancel(watcher.run(running))
		})
	}
	all.Go(func() { cancel((&refresher{client: c, touched: touched}).run(running)) })
	all.Wait()
	if ctx.Err() != nil {
		return retry.ContextError(ctx)
	}
	return context.Cause(running)
}

// refreshUntilAnswered takes the first snapshot of Live.
func (c *Client) refreshUntilAnswered(ctx context.Context) error {
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
		if err := liveBackoff.Wait(ctx, n); err != nil {
			return err
		}
	}
}

// refresher asks for what has changed.
type refresher struct {
	client  *Client
	touched <-chan string
	denials retry.Denials
}

// outcome is the end of one request of a refresher.
type outcome struct {
	group string
	err   error
}

// run asks for the groups that come out of touched, and regularly for everything, until ctx ends or the server denies
// discovery for good. What fails otherwise is tried again at the next follow-up, and at last with the whole. One that
// hangs delays no other.
func (r *refresher) run(ctx context.Context) error {
	due := newSchedule(time.Now())
	timer := time.NewTimer(regularly)
	defer timer.Stop()
	// busy holds what is being asked for, and whether it is due once more.
	busy, done := map[string]bool{}, make(chan outcome)
	var all sync.WaitGroup
	defer all.Wait()
	begin := func(group string) {
		if _, isBusy := busy[group]; isBusy {
			busy[group] = true
			return
		}
		busy[group] = false
		all.Go(func() {
			err := r.client.refreshWithin(ctx, group)
			select {
			case done <- outcome{group, err}:
			case <-ctx.Done():
			}
		})
	}
	for {
		timer.Reset(due.next(time.Now()))
		select {
		case <-ctx.Done():
			return retry.ContextError(ctx)
		case group := <-r.touched:
			due.touch(group, time.Now())
		case ended := <-done:
			if busy[ended.group] {
				due.touch(ended.group, time.Now())
			}
			delete(busy, ended.group)
			transient := r.denials.Transient(ended.err)
			if ended.group == everything && retry.IsDenied(ended.err) {
				if !transient {
					return ended.err
				}
				due.hasten(time.Now())
			}
		case <-timer.C:
			groups, whole := due.take(time.Now())
			if whole || len(groups) > manyGroups || slices.Contains(groups, everything) {
				groups = []string{everything}
			}
			for _, group := range groups {
				begin(group)
			}
		}
	}
}

// refreshWithin asks for a group or for everything, and gives up in time: a connection may be dead unnoticed.
func (c *Client) refreshWithin(ctx context.Context, group string) error {
	bounded, cancel := context.WithTimeout(ctx, wholeTimeout)
	defer cancel()
	if group == everything {
		_, err := c.Refresh(bounded)
		return err
	}
	return c.refreshGroup(bounded, group)
}
