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
// reached the version and the object of that UID is gone. Versions that cannot be compared are ignored. The version and the UID
// expire after maxWriteAge each. A wait gives up what has expired, and everything while the stream is stalled.
//
// Memory: writes that the cache has and expired writes are removed in passing, whenever there are twice as many as after the last
// removal. So there are at most twice the writes of maxWriteAge that the cache does not have.

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
	resourceVersion string // "" for none
	versionExpires  time.Time
	deleted         types.UID // "" for none
	deletedExpires  time.Time
}

func (w trackedWrite) isEmpty() bool { return w.resourceVersion == "" && w.deleted == "" }

// expires returns when all parts of a write have expired.
func (w trackedWrite) expires() (last time.Time) {
	if w.resourceVersion != "" {
		last = w.versionExpires
	}
	if w.deleted != "" && w.deletedExpires.After(last) {
		last = w.deletedExpires
	}
	return last
}

// TrackWrites returns a handle whose writes are remembered until the cache has them: creates, updates, patches, applies and deletes,
// also of subresources, by package [dynamic]'s verbs and functions that use the verbs, such as controller.Finalize.
// [Cache.WaitForWrites] waits for them, and controller.Run waits for the writes of each object's reconciles before the object's next
// reconcile. r must be a handle on the resource of the cache's source; see [dynamic.Resource.OnWrite] for what is not reported. If
// the response to a delete has neither a UID nor a resourceVersion, the deleted object is the one in the cache before the request.
// Memory: the writes of two minutes that the cache does not have.
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
// is a write with a resourceVersion that cannot be compared. Kubernetes' own resources have comparable versions.
func (c *Cache[T]) RecordWrite(w dynamic.Write) {
	key := Key{w.Namespace, w.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[c.streamOf(key.Namespace)] == nil {
		return
	}
	write, expires := c.writes.byKey[key], time.Now().Add(maxWriteAge)
	switch {
	case isReached(write.resourceVersion, w.ResourceVersion): // the response of an earlier write
		return
	case isReached(w.ResourceVersion, w.ResourceVersion):
		write.resourceVersion, write.versionExpires = w.ResourceVersion, expires
	case w.ResourceVersion == "" && w.UID != "":
		write.deleted, write.deletedExpires = w.UID, expires
	default:
		return
	}
	if c.writes.byKey == nil {
		c.writes.byKey = map[Key]trackedWrite{}
	}
	c.writes.byKey[key] = write
	if len(c.writes.byKey) < max(c.writes.sweepAt, minSweep) {
		return
	}
	for key, write := range c.writes.byKey {
		if c.missing(key, write).isEmpty() || time.Until(write.expires()) <= 0 {
			delete(c.writes.byKey, key)
		}
	}
	c.writes.sweepAt = 2 * len(c.writes.byKey)
}

// missing returns the parts of a write that the cache does not have. A deletion counts only once the version is reached: the version
// may be that of the object's creation.
func (c *Cache[T]) missing(key Key, write trackedWrite) trackedWrite {
	stream := c.streams[c.streamOf(key.Namespace)]
	isBeforeList := stream.resourceVersion == "" && !stream.synced
	if isBeforeList || isNewer(write.resourceVersion, stream.resourceVersion) {
		return write
	}
	write.resourceVersion = ""
	if e := c.objects.get(key); e == nil || c.uidOf(e.stored) != write.deleted {
		write.deleted = ""
	}
	return write
}

// forgetWrites forgets the writes to a stream whose resourceVersion has become lower. After a restore of etcd from a backup their
// versions may never be reached.
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
// It returns ctx's error if ctx ends before. It returns an error that names a write if the cache has not received the write two
// minutes after it was made, if the stream of its namespace cannot be resumed for ten seconds, or if Run ends. Later calls do not
// wait for these writes. If no selector of the source includes a written object, the cache waits for the server's
// next bookmark, a minute or so.
func (c *Cache[T]) WaitForWrites(ctx context.Context, keys ...Key) error {
	c.mu.RLock()
	pending := c.pendingWrites(keys)
	c.mu.RUnlock()
	var failure error
	for key, write := range pending {
		err := c.waitForWrite(ctx, key, write)
		if err != nil && ctx.Err() != nil {
			return err
		}
		failure = cmp.Or(failure, err)
	}
	return failure
}

// waitForWrite waits for one write, and gives it up after an error other than the end of ctx.
func (c *Cache[T]) waitForWrite(ctx context.Context, key Key, write pendingWrite) error {
	waitCtx, cancel := context.WithDeadlineCause(ctx, write.expires(), errExpired)
	defer cancel()
	stream := c.streams[c.streamOf(key.Namespace)]
	var stalled error
	w := &waiter{stream: c.streamOf(key.Namespace), version: write.resourceVersion, key: key, condition: func() bool {
		isReceived := stream.restores != write.restores || c.missing(key, write.trackedWrite).isEmpty()
		if !isReceived {
			stalled = stream.stalled()
		}
		return isReceived || stalled != nil
	}}
	missing := "the write of " + key.String() + " not received"
	err := c.wait(waitCtx, w, missing)
	switch {
	case errors.Is(err, errExpired):
		err = fmt.Errorf("cache %s: %s within %s", c, missing, maxWriteAge)
	case err == nil && stalled != nil:
		err = fmt.Errorf("cache %s: %s: %w", c, missing, stalled)
	case err == nil || ctx.Err() != nil:
		return err
	}
	c.giveUp(key, write.trackedWrite)
	return err
}

// giveUp forgets the parts of a write. Later writes to the object are kept.
func (c *Cache[T]) giveUp(key Key, write trackedWrite) {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := c.writes.byKey[key]
	if isReached(write.resourceVersion, current.resourceVersion) {
		current.resourceVersion = ""
	}
	if current.deleted == write.deleted {
		current.deleted = ""
	}
	c.writes.byKey[key] = current
	if current.isEmpty() {
		delete(c.writes.byKey, key)
	}
}

// errExpired is the cause of the end of a wait for writes after maxWriteAge.
var errExpired = errors.New("given up")

// pendingWrite has the parts of a write that the cache does not have.
type pendingWrite struct {
	trackedWrite
	restores int // of its stream
}

// pendingWrites returns the writes to the objects of these keys, or all, that the cache does not have.
func (c *Cache[T]) pendingWrites(keys []Key) map[Key]pendingWrite {
	var pending map[Key]pendingWrite
	add := func(key Key, write trackedWrite) {
		missing := c.missing(key, write)
		if missing.isEmpty() {
			return
		}
		if pending == nil {
			pending = map[Key]pendingWrite{}
		}
		pending[key] = pendingWrite{missing, c.streams[c.streamOf(key.Namespace)].restores}
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
