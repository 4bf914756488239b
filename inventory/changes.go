package inventory

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/retry"
)

// Change is a change of the result of a query.
type Change struct {
	// Type is Added, Modified or Deleted. An object that no longer satisfies the query is Deleted, too.
	Type watch.EventType
	// Entry is the new state of the object, or the last state in the result if it is Deleted.
	Entry Entry
}

const (
	// minChangesPause is the shortest time between two queries of Changes.
	minChangesPause = 100 * time.Millisecond
	// changesPauseFactor: pause between two queries >= changesPauseFactor * duration of the last query.
	changesPauseFactor = 4
)

// Changes yields the result of a query as Added, and then the changes of the result. Limit and Continue must be empty. The query is
// repeated after changes of the cache, at most ten times a second and for at most a fifth of the time: changes of an object between two
// queries are a single change. A replaced object (same name, new UID) is yielded as Deleted and Added.
//
// An invalid query is yielded as an error, as are the failed reviews of the first query. Later failures are retried, and the result stays meanwhile.
// A view of a user repeats the query every minute, with new permissions. The sequence ends when ctx ends, or after the end of Run.
func (v *View) Changes(ctx context.Context, q *Query) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if q != nil && (q.Limit > 0 || q.Continue != "") {
			yield(Change{}, errors.New("changes of a query: Limit and Continue must be empty"))
			return
		}
		wake, forget := v.cache.wakeups.add()
		defer forget()
		known := map[objectName]Entry{}
		for queries := 1; ; queries++ {
			start := time.Now()
			page, err := v.Query(ctx, q)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && queries == 1:
				yield(Change{}, err)
				return
			case err == nil && !yieldChanges(known, page.Entries, yield):
				return
			}
			_ = retry.Sleep(ctx, max(minChangesPause, changesPauseFactor*time.Since(start)))
			if !v.wait(ctx, wake, err != nil) {
				return
			}
		}
	}
}

// objectName identifies an object of a cache across versions of its resource.
type objectName struct {
	group, resource string
	types.NamespacedName
}

// yieldChanges yields the differences between known and entries, and updates known. It reports false after an early break.
func yieldChanges(known map[objectName]Entry, entries []Entry, yield func(Change, error) bool) bool {
	found := make(map[objectName]bool, len(entries))
	nameOf := func(e Entry) objectName {
		gvr := e.APIResource().GVR
		return objectName{gvr.Group, gvr.Resource, e.NamespacedName}
	}
	for _, e := range entries {
		found[nameOf(e)] = true
	}
	for name, last := range known {
		if !found[name] {
			delete(known, name)
			if !yield(Change{watch.Deleted, last}, nil) {
				return false
			}
		}
	}
	for _, e := range entries {
		name := nameOf(e)
		last, isKnown := known[name]
		known[name] = e
		change := Change{watch.Added, e}
		switch {
		case !isKnown:
		case last.UID() != e.UID():
			if !yield(Change{watch.Deleted, last}, nil) {
				return false
			}
		case last.ResourceVersion() == e.ResourceVersion() && last.kind.resource.GVR == e.kind.resource.GVR:
			continue
		default:
			change.Type = watch.Modified
		}
		if !yield(change, nil) {
			return false
		}
	}
	return true
}

// wait waits until the query must be repeated. It reports false at the end of ctx or Run.
func (v *View) wait(ctx context.Context, wake <-chan struct{}, hasFailed bool) bool {
	var expired <-chan time.Time
	switch {
	case hasFailed:
		expired = time.After(followBackoff.Min)
	case v.permissions != nil:
		expired = time.After(maxPermissionAge)
	}
	select {
	case <-wake: // also after the end of Run
		return true
	default:
	}
	select {
	case <-wake:
	case <-expired:
	case <-v.cache.stopped:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// wakeups are the channels of the sequences of Changes. The zero value is ready.
type wakeups struct {
	mu  sync.Mutex
	all map[chan struct{}]struct{}
}

// add returns a channel that receives a value after changes of the cache, and the function that ends it.
func (w *wakeups) add() (wake <-chan struct{}, forget func()) {
	channel := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[chan struct{}]struct{}{}
	}
	w.all[channel] = struct{}{}
	return channel, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, channel)
	}
}

func (w *wakeups) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for channel := range w.all {
		select {
		case channel <- struct{}{}:
		default:
		}
	}
}
