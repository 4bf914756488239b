package discovery

import (
	"cmp"
	"context"
	"iter"
	"reflect"
	"slices"
)

// Change is one resource that the server serves otherwise than before.
type Change struct {
	// Before is the resource as it was, nil where it is new.
	Before *Resource
	// After is the resource as it is, nil where it is gone.
	After *Resource
}

// Changes yields how what the server serves changes, from the moment of the call on and until ctx ends. It asks nothing
// itself: it tells what [Client.Live], and everybody's [Client.Refresh], find out. Whoever is slow to read is told of
// several changes to a resource as one.
func (c *Client) Changes(ctx context.Context) iter.Seq[Change] {
	last, changed := c.current()
	return func(yield func(Change) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			var next *Snapshot
			next, changed = c.current()
			for _, change := range difference(last, next) {
				if !yield(change) {
					return
				}
			}
			last = next
		}
	}
}

// difference lists what changed, in the server's order, and then what is gone.
func difference(before, after *Snapshot) []Change {
	if before == nil {
		before = &Snapshot{}
	}
	was := byName(before)
	var changes []Change
	for _, group := range after.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				old := was[resource.GVR]
				if old == nil || !sameResource(old, resource) {
					changes = append(changes, Change{Before: old, After: resource})
				}
			}
		}
	}
	for _, resource := range gone(before, byName(after)) {
		changes = append(changes, Change{Before: resource})
	}
	return changes
}

// sameResource compares what both forms of discovery tell: one has no storage version hash, and they list verbs and
// subresources in different orders.
func sameResource(a, b *Resource) bool {
	if a == b {
		return true
	}
	one, other := inOrder(a), inOrder(b)
	if a.StorageVersionHash == "" || b.StorageVersionHash == "" {
		one.StorageVersionHash, other.StorageVersionHash = "", ""
	}
	return reflect.DeepEqual(one, other)
}

func inOrder(r *Resource) Resource {
	sorted := *r
	sorted.Verbs = slices.Sorted(slices.Values(r.Verbs))
	sorted.ShortNames = slices.Sorted(slices.Values(r.ShortNames))
	sorted.Categories = slices.Sorted(slices.Values(r.Categories))
	sorted.Subresources = slices.SortedFunc(slices.Values(r.Subresources), func(a, b Subresource) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted.Subresources {
		sorted.Subresources[i].Verbs = slices.Sorted(slices.Values(sorted.Subresources[i].Verbs))
	}
	return sorted
}
