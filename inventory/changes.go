package inventory

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// minChangesPause is the shortest time between two searches of Changes.
	minChangesPause = 10 * time.Millisecond
	// changesPauseFactor: pause between two searches >= changesPauseFactor * duration of the last search.
	changesPauseFactor = 4
)

// Changes yields the result of a query as Added, and then the changes of the result. Limit and Continue must be empty. Changed objects
// are compared with the query at most a hundred times a second and for at most a fifth of the time: changes of an object in between are a
// single change. A replaced object (same name, new UID) is yielded as Deleted and Added.
//
// The whole query is repeated every 30 seconds, after changes of the kinds, after more than 10,000 changes in between, and with
// Descendants after each change.
//
// An invalid query is yielded as an error, as are the failed reviews of the first query. Later failures are retried, and the result stays meanwhile.
// A view of a user has changed permissions after a minute. The sequence ends when ctx ends, or after the end of Run.
func (v *View) Changes(ctx context.Context, q *Query) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if q != nil && (q.Limit > 0 || q.Continue != "") {
			yield(Change{}, errors.New("changes of a query: Limit and Continue must be empty"))
			return
		}
		consumer := v.cache.consumers.add()
		defer v.cache.consumers.remove(consumer)
		r := &result{view: v, query: q, known: map[schema.GroupResource]map[types.NamespacedName]Entry{}}
		for searches := 1; ; searches++ {
			start := time.Now()
			changes, err := r.update(ctx, consumer.next())
			pause := max(minChangesPause, changesPauseFactor*time.Since(start))
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && searches == 1:
				yield(Change{}, err)
				return
			}
			for _, change := range changes {
				if !yield(change, nil) {
					return
				}
			}
			_ = retry.Sleep(ctx, pause)
			if !v.wait(ctx, consumer, err != nil) {
				return
			}
		}
	}
}

// result is the result of a query at the last search.
type result struct {
	view  *View
	query *Query
	known map[schema.GroupResource]map[types.NamespacedName]Entry
}

// objectName identifies an object of a cache across versions of its resource.
type objectName struct {
	schema.GroupResource
	types.NamespacedName
}

func (k *searchedKind) objectName(key types.NamespacedName) objectName {
	return objectName{k.resource.GVR.GroupResource(), key}
}

// update returns the changes of the result by changed objects. nil stands for all objects. After an error the result is unchanged.
func (r *result) update(ctx context.Context, changed map[changedObject]struct{}) ([]Change, error) {
	if changed == nil || r.query != nil && r.query.Descendants {
		page, err := r.view.Query(ctx, r.query)
		if err != nil {
			return nil, err
		}
		return r.replace(page.Entries), nil
	}
	s, err := r.view.newSearch(r.query)
	if err != nil {
		return nil, err
	}
	var missing []objectName
	var found []Entry
	for object := range changed {
		for _, k := range s.kinds.sameObjects(object.kind) {
			switch e, isSelected, err := s.find(ctx, k, object.NamespacedName); {
			case err != nil:
				return nil, err
			case isSelected:
				found = append(found, e)
			default:
				missing = append(missing, k.objectName(object.NamespacedName))
			}
		}
	}
	slices.SortFunc(found, compareEntries)
	return r.set(r.remove(missing), found), nil
}

// replace replaces all entries, and returns the changes.
func (r *result) replace(entries []Entry) []Change {
	found := make(map[objectName]bool, len(entries))
	for _, e := range entries {
		found[e.kind.objectName(e.NamespacedName)] = true
	}
	var missing []objectName
	for resource, known := range r.known {
		for key := range known {
			if name := (objectName{resource, key}); !found[name] {
				missing = append(missing, name)
			}
		}
	}
	return r.set(r.remove(missing), entries)
}

// remove removes entries, and returns the changes in the order of the entries.
func (r *result) remove(names []objectName) (changes []Change) {
	for _, name := range names {
		if last, isKnown := r.known[name.GroupResource][name.NamespacedName]; isKnown {
			delete(r.known[name.GroupResource], name.NamespacedName)
			changes = append(changes, Change{watch.Deleted, last})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return compareEntries(a.Entry, b.Entry) })
	return changes
}

// set sets the current state of entries, and appends the changes.
func (r *result) set(changes []Change, entries []Entry) []Change {
	changes = slices.Grow(changes, len(entries))
	for _, e := range entries {
		known := r.known[e.kind.resource.GVR.GroupResource()]
		if known == nil {
			known = map[types.NamespacedName]Entry{}
			r.known[e.kind.resource.GVR.GroupResource()] = known
		}
		last, isKnown := known[e.NamespacedName]
		change := Change{watch.Added, e}
		switch {
		case !isKnown:
		case last.UID() != e.UID():
			changes = append(changes, Change{watch.Deleted, last})
		case last.ResourceVersion() == e.ResourceVersion() && last.kind.resource.GVR == e.kind.resource.GVR:
			known[e.NamespacedName] = e
			continue
		default:
			change.Type = watch.Modified
		}
		known[e.NamespacedName] = e
		changes = append(changes, change)
	}
	return changes
}

// wait waits until the result may have changed. It reports false at the end of ctx or Run.
func (v *View) wait(ctx context.Context, c *consumer, hasFailed bool) bool {
	ready := c.ready
	interval := resyncInterval
	if hasFailed {
		ready = nil // the next search is for all objects
		interval = followBackoff.Min
	}
	select {
	case <-ready: // also after the end of Run
		return true
	default:
	}
	expired := time.NewTimer(interval)
	defer expired.Stop()
	select {
	case <-ready:
	case <-expired.C:
		c.addAll()
	case <-v.cache.stopped:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}
