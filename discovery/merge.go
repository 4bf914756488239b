package discovery

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sort"
	"time"
)

// This file merges responses into the latest snapshot. Requests for all groups and for single groups overlap. Each response
// carries the time of its request: a group is replaced only by a later request. Published snapshots are immutable. A new snapshot
// takes over missing parts from its predecessor and is dropped if both are equal.

// maxRemoved bounds Snapshot.Removed.
const maxRemoved = 1000

// publishAll makes next the latest snapshot. Groups with a request later than next.TakenAt are kept.
func (c *Client) publishAll(next *Snapshot) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requestedAt = next.TakenAt
	for name, at := range c.groupRequestedAt {
		if !at.After(next.TakenAt) {
			delete(c.groupRequestedAt, name)
			continue
		}
		next.Groups = replaceGroup(next.Groups, name, groupNamed(c.latest.Groups, name))
	}
	return c.publish(next)
}

// updateGroup replaces a group of the latest snapshot with the result of update, or removes it if the result is nil. It does
// nothing if the group was requested later than requestedAt.
func (c *Client) updateGroup(name string, requestedAt time.Time, update func(*Group) *Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requestedAt.After(requestedAt) || c.groupRequestedAt[name].After(requestedAt) {
		return
	}
	before := c.latest
	next := *c.latest
	next.TakenAt = requestedAt
	next.Groups = copyGroups(before.Groups)
	next.Groups = replaceGroup(next.Groups, name, update(groupNamed(next.Groups, name)))
	c.groupRequestedAt[name] = requestedAt
	if c.publish(&next) != before {
		c.rootsStale.Store(true)
	}
}

// publish makes next the latest snapshot, merged with the previous snapshot. The caller holds mu.
func (c *Client) publish(next *Snapshot) *Snapshot {
	if next = mergePrevious(c.latest, next); next == c.latest {
		return next
	}
	c.latest = next
	close(c.changed)
	c.changed = make(chan struct{})
	return next
}

func groupNamed(groups []Group, name string) *Group {
	for i := range groups {
		if groups[i].Name == name {
			return &groups[i]
		}
	}
	return nil
}

// replaceGroup replaces the named group with a copy of replacement, or removes the group if replacement is nil.
func replaceGroup(groups []Group, name string, replacement *Group) []Group {
	if replacement == nil {
		return slices.DeleteFunc(groups, func(g Group) bool { return g.Name == name })
	}
	replaced := copyGroups([]Group{*replacement})
	if old := groupNamed(groups, name); old != nil {
		*old = replaced[0]
		return groups
	}
	return append(groups, replaced...)
}

// copyGroups copies groups and versions, because mergePrevious must not change an earlier response or snapshot.
func copyGroups(lists ...[]Group) []Group {
	groups := slices.Concat(lists...)
	for i := range groups {
		groups[i].Versions = slices.Clone(groups[i].Versions)
	}
	return groups
}

// mergePrevious adds the last known resources of unreadable versions and the removed resources to next. It returns previous if
// both are equal.
func mergePrevious(previous, next *Snapshot) *Snapshot {
	if previous == nil {
		return next
	}
	known := maps.Collect(previous.Versions())
	for gv, version := range next.Versions() {
		if last := known[gv]; last != nil && !version.Healthy() && len(version.Resources) == 0 {
			version.Resources = last.Resources
		}
	}
	next.Removed = mergeRemoved(previous, next)
	if previous.Aggregated == next.Aggregated && reflect.DeepEqual(previous.Removed, next.Removed) && equalGroups(previous.Groups, next.Groups) {
		return previous
	}
	return next
}

// mergeRemoved returns the removed resources, latest first. Resources served again are dropped.
func mergeRemoved(previous, next *Snapshot) []RemovedResource {
	var removed []RemovedResource
	served := next.resourcesByGVR()
	for resource := range previous.Resources() {
		if served[resource.GVR] == nil {
			removed = append(removed, RemovedResource{Resource: resource, DetectedAt: next.TakenAt})
		}
	}
	for _, earlier := range previous.Removed {
		if served[earlier.Resource.GVR] == nil {
			removed = append(removed, earlier)
		}
	}
	return removed[:min(len(removed), maxRemoved)]
}

func equalGroups(a, b []Group) bool {
	return slices.EqualFunc(a, b, func(a, b Group) bool {
		return a.Name == b.Name && slices.EqualFunc(a.Versions, b.Versions, equalVersions)
	})
}

func equalVersions(a, b Version) bool {
	return a.Name == b.Name && a.Stale == b.Stale && errorText(a.Err) == errorText(b.Err) &&
		slices.EqualFunc(a.Resources, b.Resources, equalResources)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// equalResources compares resources across the two formats of discovery. Aggregated discovery has no storage version hash, and
// the order of verbs and subresources differs.
func equalResources(a, b *Resource) bool {
	if a == b {
		return true
	}
	x := sorted(a)
	y := sorted(b)
	if a.StorageVersionHash == "" || b.StorageVersionHash == "" {
		x.StorageVersionHash = ""
		y.StorageVersionHash = ""
	}
	return reflect.DeepEqual(x, y)
}

func sorted(r *Resource) Resource {
	sortedCopy := *r
	sortedCopy.Verbs = slices.Sorted(slices.Values(r.Verbs))
	sortedCopy.ShortNames = slices.Sorted(slices.Values(r.ShortNames))
	sortedCopy.Categories = slices.Sorted(slices.Values(r.Categories))
	sortedCopy.Subresources = slices.Clone(r.Subresources)
	sort.Slice(sortedCopy.Subresources, func(i, j int) bool { return sortedCopy.Subresources[i].Name < sortedCopy.Subresources[j].Name })
	for i := range sortedCopy.Subresources {
		sortedCopy.Subresources[i].Verbs = slices.Sorted(slices.Values(sortedCopy.Subresources[i].Verbs))
	}
	return sortedCopy
}

// ResourceChange is a changed resource between two snapshots.
type ResourceChange struct {
	// Old is the resource before the change. It is nil for a new resource.
	Old *Resource
	// New is the resource after the change. It is nil for a removed resource.
	New *Resource
}

// Changes yields the changes of resources since a snapshot of the client, until ctx ends. A nil since yields every resource as new, and
// then the changes. Changes sends no requests: changes come from [Client.Run] and from every [Client.Refresh]. Several changes of a
// resource are coalesced for a slow consumer. Each loop over the sequence begins with the changes since the snapshot.
func (c *Client) Changes(ctx context.Context, since *Snapshot) iter.Seq[ResourceChange] {
	return func(yield func(ResourceChange) bool) {
		last := since
		for ctx.Err() == nil {
			next, changed := c.latestAndChanged()
			if next != nil {
				for _, change := range difference(last, next) {
					if !yield(change) {
						return
					}
				}
				last = next
			}
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
	}
}

// difference returns the new and changed resources followed by the removed resources, both in the server's order.
func difference(before, after *Snapshot) []ResourceChange {
	if before == nil {
		before = &Snapshot{}
	}
	previous := before.resourcesByGVR()
	current := after.resourcesByGVR()
	var changes []ResourceChange
	for resource := range after.Resources() {
		if old := previous[resource.GVR]; old == nil || !equalResources(old, resource) {
			changes = append(changes, ResourceChange{Old: old, New: resource})
		}
	}
	for resource := range before.Resources() {
		if current[resource.GVR] == nil {
			changes = append(changes, ResourceChange{Old: resource})
		}
	}
	return changes
}
