package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/consistency"
	"k8s.io/apimachinery/pkg/types"
)

// Tracked writes are remembered by key until the cache has them: the highest resourceVersion that was written and, if the server
// deleted the object without naming a version, the UID of that object. A write is in the cache once the stream of its namespace has
// reached the version and the object of that UID is gone. Versions that cannot be compared are ignored. A write is given up, and no
// longer waited for, after maxWriteAge and when its stream stalls.
//
// Memory: writes that the cache has, and those that are given up, are removed in passing, whenever there are twice as many as after
// the last removal. So there are at most twice the writes of maxWriteAge that the cache does not have.

const (
	// maxWriteAge is longer than the interval of a server's bookmarks, a minute.
	maxWriteAge = 2 * time.Minute
	// minSweep is the number of writes before the first removal.
	minSweep = 1024
)

// trackedWrites are the remembered writes of a cache, under its lock.
type trackedWrites struct {
	byKey   map[Key]trackedWrite
	sweepAt int // the number of writes at which some are removed
}

type trackedWrite struct {
	resourceVersion string    // "" for none
	deleted         types.UID // "" for none
	expires         time.Time
}

// TrackWrites returns a handle whose writes, of package [dynamic]'s verbs and of everything that is built on them such as
// controller.Finalize, are remembered until the cache has them: creates, updates, patches, applies and deletes, also of
// subresources. [Cache.WaitForWrites] waits for them, and controller.Run waits for the writes of each object's reconciles before
// the object's next reconcile. r must be a handle on the resource of the cache's source; see [dynamic.Resource.OnWrite] for what is
// not reported. A delete whose response has neither a UID nor a resourceVersion is that of the object that the cache had before the
// request. Memory: the writes of two minutes that the cache does not have.
func (c *Cache[T]) TrackWrites(r *dynamic.Resource) *dynamic.Resource {
	return r.OnWrite(func(ctx context.Context, namespace, name string) func(dynamic.Write) {
		var uid types.UID
		if before := c.lookUp(Key{namespace, name}); before.exists() {
			uid = c.uidOf(before)
		}
		return func(w dynamic.Write) {
			w.UID = cmp.Or(w.UID, uid)
			c.RecordWrite(w)
			key := Key{w.Namespace, w.Name}
			consistency.Record(ctx, writeID{c, key}, func(ctx context.Context) error { return c.WaitForWrites(ctx, key) })
		}
	})
}

// writeID identifies the writes to an object of a cache.
type writeID struct {
	cache any
	key   Key
}

// RecordWrite remembers a write that was made without a handle of [Cache.TrackWrites], by another client for instance. It is a
// write that the server has accepted; see [dynamic.Write] for its fields. A write without UID and resourceVersion is ignored, and so
// is a resourceVersion that cannot be compared, which Kubernetes' own resources do not have.
func (c *Cache[T]) RecordWrite(w dynamic.Write) {
	key := Key{w.Namespace, w.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[c.streamOf(key.Namespace)] == nil {
		return
	}
	write := c.writes.byKey[key]
	switch {
	case isReached(w.ResourceVersion, w.ResourceVersion):
		if !isReached(write.resourceVersion, w.ResourceVersion) {
			write.resourceVersion = w.ResourceVersion
		}
	case w.ResourceVersion == "" && w.UID != "":
		write.deleted = w.UID
	default:
		return
	}
	write.expires = time.Now().Add(maxWriteAge)
	if c.writes.byKey == nil {
		c.writes.byKey = map[Key]trackedWrite{}
	}
	c.writes.byKey[key] = write
	if len(c.writes.byKey) < max(c.writes.sweepAt, minSweep) {
		return
	}
	for key, write := range c.writes.byKey {
		if c.hasWrite(key, write) || time.Until(write.expires) <= 0 {
			delete(c.writes.byKey, key)
		}
	}
	c.writes.sweepAt = 2 * len(c.writes.byKey)
}

func (c *Cache[T]) hasWrite(key Key, write trackedWrite) bool {
	stream := c.streams[c.streamOf(key.Namespace)]
	switch {
	case stream.resourceVersion == "" && !stream.synced: // before the initial list
		return false
	case isNewer(write.resourceVersion, stream.resourceVersion):
		return false
	case write.deleted == "":
		return true
	}
	e := c.objects.get(key)
	return e == nil || c.uidOf(e.stored) != write.deleted
}

// forgetWrites forgets the writes to a stream whose resourceVersion has become lower, also those that are being waited for: after a
// restore of etcd from a backup their versions may never be reached.
func (c *Cache[T]) forgetWrites(stream string) {
	for key := range c.writes.byKey {
		if c.streamOf(key.Namespace) == stream {
			delete(c.writes.byKey, key)
		}
	}
}

// HasWrites reports whether [Cache.WaitForWrites] would return at once, as the cache has the writes.
func (c *Cache[T]) HasWrites(keys ...Key) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.pendingWrites(keys)) == 0
}

// WaitForWrites waits until the cache has the writes that were made through handles of [Cache.TrackWrites] before the call: to
// the objects of these keys or, without keys, all. Reads after it find them, or newer states:
//
//	if err := c.WaitForWrites(ctx, key); err != nil {
//		return err
//	}
//	obj, found := c.Get(key.Namespace, key.Name)
//
// It returns ctx's error if that ends before. After another error, which says what was waited for, later calls do not wait for the
// same writes: if the cache has not received a write two minutes after it was made, if the stream of its namespace cannot be
// resumed for ten seconds, or if Run ends. If no selector of the source includes a written object, the cache waits for the server's
// next bookmark, a minute or so.
func (c *Cache[T]) WaitForWrites(ctx context.Context, keys ...Key) error {
	c.mu.RLock()
	pending := c.pendingWrites(keys)
	c.mu.RUnlock()
	if len(pending) == 0 {
		return nil
	}
	var expires time.Time
	for _, write := range pending {
		if write.expires.After(expires) {
			expires = write.expires
		}
	}
	waitCtx, cancel := context.WithDeadlineCause(ctx, expires, errExpired)
	defer cancel()
	var missing Key
	var stalled error
	err := c.wait(waitCtx, func() bool {
		received := true
		for key, write := range pending {
			stream := c.streams[c.streamOf(key.Namespace)]
			switch {
			case stream.restores != write.restores || c.hasWrite(key, write.trackedWrite):
				delete(pending, key)
			case stream.stalled != nil:
				stalled = fmt.Errorf("cache %s: the write of %s not received: %w", c, key, stream.stalled)
			default:
				missing, received = key, false
			}
		}
		return received
	}, func() string { return fmt.Sprintf("the write of %s not received", missing) })
	switch {
	case err == nil && len(pending) > 0:
		err = stalled
	case errors.Is(err, errExpired):
		err = fmt.Errorf("cache %s: the write of %s not received within %s", c, missing, maxWriteAge)
	case err == nil || ctx.Err() != nil:
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, write := range pending {
		if c.writes.byKey[key] == write.trackedWrite {
			delete(c.writes.byKey, key)
		}
	}
	return err
}

// errExpired is the cause of the end of a wait for writes after maxWriteAge.
var errExpired = errors.New("given up")

// pendingWrite is a write that the cache does not have.
type pendingWrite struct {
	trackedWrite
	restores int // of its stream
}

// pendingWrites returns the writes to the objects of these keys, or all, that the cache does not have.
func (c *Cache[T]) pendingWrites(keys []Key) map[Key]pendingWrite {
	var pending map[Key]pendingWrite
	add := func(key Key, write trackedWrite) {
		if c.hasWrite(key, write) {
			return
		}
		if pending == nil {
			pending = map[Key]pendingWrite{}
		}
		pending[key] = pendingWrite{write, c.streams[c.streamOf(key.Namespace)].restores}
	}
	for _, key := range keys {
		if write, found := c.writes.byKey[key]; found {
			add(key, write)
		}
	}
	if len(keys) == 0 {
		for key, write := range c.writes.byKey {
			add(key, write)
		}
	}
	return pending
}
