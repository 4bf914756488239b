package cache

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/dynamic"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Writes through the handles of TrackWrites are remembered by key until the cache has them: the highest resourceVersion that
// was written and, if the server deleted the object without naming a version, the UID of that object. A write is in the cache
// once the stream of its namespace has reached the version and the object of that UID is gone. Writes that the cache has are
// removed in passing, whenever there are twice as many as after the last removal. If maxWrites are not in the cache even so,
// their versions are reduced to one for each namespace, which all of its keys then wait for: memory is bounded, and no read
// becomes stale. UIDs are kept only of objects that the cache still has.

const (
	minSweep  = 1024 // writes before those are removed that the cache has
	maxWrites = 16_384
)

// trackedWrites are the remembered writes of a cache, under its lock.
type trackedWrites struct {
	byKey   map[Key]trackedWrite
	sweepAt int               // the number of writes at which those are removed that the cache has
	floors  map[string]string // by stream, the versions that replace those of many writes
	forgets int               // how often all writes were forgotten
}

type trackedWrite struct {
	resourceVersion string    // "" for none
	deleted         types.UID // "" for none
}

// TrackWrites returns a handle whose writes, of package [dynamic]'s verbs and of everything that is built on them such as
// controller.Finalize, are remembered until the cache has them: creates, updates, patches, applies and deletes, also of
// subresources. [Cache.WaitForWrites] waits for them, and controller.Run does before each reconcile. r must be a handle on the
// resource of the cache's source; see [dynamic.Resource.OnWrite] for what is not reported. Memory is bounded: of many
// thousand writes that the cache does not have, only the highest resourceVersion is remembered.
func (c *Cache[T]) TrackWrites(r *dynamic.Resource) *dynamic.Resource {
	return r.OnWrite(c.RecordWrite)
}

// RecordWrite remembers a write that was made without a handle of [Cache.TrackWrites], by another client for instance, as if
// it had been made with one. It is a write that the server has accepted; see [dynamic.Write] for its fields.
func (c *Cache[T]) RecordWrite(w dynamic.Write) {
	key := Key{w.Namespace, w.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, isFollowed := c.versions[c.streamOf(key.Namespace)]; !isFollowed {
		return
	}
	write := c.writes.byKey[key]
	switch {
	case w.ResourceVersion != "":
		if !isReached(write.resourceVersion, w.ResourceVersion) {
			write.resourceVersion = w.ResourceVersion
		}
	case w.UID != "":
		write.deleted = w.UID
	case c.objects.get(key) != nil:
		write.deleted = c.uidOf(c.objects.get(key).stored)
	default:
		return
	}
	if c.writes.byKey == nil {
		c.writes.byKey, c.writes.floors = map[Key]trackedWrite{}, map[string]string{}
	}
	c.writes.byKey[key] = write
	if len(c.writes.byKey) >= max(c.writes.sweepAt, minSweep) {
		c.sweepWrites()
	}
}

// sweepWrites removes the writes that the cache has and, if too many are left, replaces their versions by floors.
func (c *Cache[T]) sweepWrites() {
	for key, write := range c.writes.byKey {
		if c.hasWrite(key, write) {
			delete(c.writes.byKey, key)
		}
	}
	if len(c.writes.byKey) >= maxWrites {
		for key, write := range c.writes.byKey {
			stream := c.streamOf(key.Namespace)
			if write.resourceVersion != "" && !isReached(c.writes.floors[stream], write.resourceVersion) {
				c.writes.floors[stream] = write.resourceVersion
			}
			if write.deleted == "" || c.objects.get(key) == nil {
				delete(c.writes.byKey, key)
			}
		}
	}
	c.writes.sweepAt = 2 * len(c.writes.byKey)
}

func (c *Cache[T]) hasWrite(key Key, write trackedWrite) bool {
	reached := c.versions[c.streamOf(key.Namespace)]
	switch {
	case reached == "": // before the initial list
		return false
	case write.resourceVersion != "" && !isReached(reached, write.resourceVersion):
		return false
	case write.deleted == "":
		return true
	}
	e := c.objects.get(key)
	return e == nil || c.uidOf(e.stored) != write.deleted
}

// forgetWrites forgets all writes, also those that are being waited for: after a restore of etcd from a backup their
// versions may never be reached.
func (c *Cache[T]) forgetWrites() { c.writes = trackedWrites{forgets: c.writes.forgets + 1} }

// WaitForWrites waits until the cache has the writes that were made through handles of [Cache.TrackWrites] before the call: to
// the objects of these keys or, without keys, all. Reads after it find them, or newer states:
//
//	if err := c.WaitForWrites(ctx, key); err != nil {
//		return err
//	}
//	obj, found := c.Get(key.Namespace, key.Name)
//
// It returns ctx's error if that ends before, and Run's if Run does. If no selector or namespace of the source includes a
// written object, the cache waits for the server's next bookmark, a minute or so. A version that cannot be compared, which
// Kubernetes' own resources do not have, is an error.
func (c *Cache[T]) WaitForWrites(ctx context.Context, keys ...Key) error {
	c.mu.RLock()
	pending, floors := c.pendingWrites(keys)
	forgets := c.writes.forgets
	c.mu.RUnlock()
	for _, floor := range floors {
		if err := c.checkComparable(floor); err != nil {
			return err
		}
	}
	for key, write := range pending {
		if version := write.resourceVersion; version != "" {
			if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
				return fmt.Errorf("cache %s: wait for the write of %s: resourceVersion %q: %w", c, key, version, err)
			}
		}
	}
	if len(pending)+len(floors) == 0 {
		return nil
	}
	var missing string
	return c.wait(ctx, func() bool {
		if c.writes.forgets != forgets {
			return true
		}
		for stream, floor := range floors {
			if missing = "resourceVersion " + floor; !isReached(c.versions[stream], floor) {
				return false
			}
		}
		for key, write := range pending {
			if missing = "the write of " + key.String(); !c.hasWrite(key, write) {
				return false
			}
			delete(pending, key)
		}
		return true
	}, func() string { return missing + " not received" })
}

// pendingWrites returns the writes to the objects of these keys, or all, that the cache does not have.
func (c *Cache[T]) pendingWrites(keys []Key) (pending map[Key]trackedWrite, floors map[string]string) {
	pending, floors = map[Key]trackedWrite{}, map[string]string{}
	add := func(key Key, write trackedWrite) {
		if !c.hasWrite(key, write) {
			pending[key] = write
		}
	}
	addFloor := func(stream string) {
		if floor := c.writes.floors[stream]; floor != "" && !isReached(c.versions[stream], floor) {
			floors[stream] = floor
		}
	}
	for _, key := range keys {
		if write, found := c.writes.byKey[key]; found {
			add(key, write)
		}
		addFloor(c.streamOf(key.Namespace))
	}
	if len(keys) == 0 {
		for key, write := range c.writes.byKey {
			add(key, write)
		}
		for stream := range c.writes.floors {
			addFloor(stream)
		}
	}
	return pending, floors
}
