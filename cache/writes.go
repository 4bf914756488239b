package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/consistency"
	"github.com/anykind/anykind/internal/resourceversion"
)

// Tracked writes are kept by key until the cache has received them. A trackedWrite holds the highest written resourceVersion. If
// a delete's response has no resourceVersion, it also holds the UID of the deleted object. The write is received once the stream
// of its namespace has reached the resourceVersion and the object with the UID is gone. Versions without an order are ignored.
// The version and the UID expire after maxWriteAge each. A wait ends with an error at the expiry and while the stream is stalled.
//
// Memory: a sweep removes received and expired writes, at twice the number of writes left by the previous sweep. So at most twice
// the missing writes of maxWriteAge are kept.

const (
	// maxWriteAge is longer than the server's bookmark interval, a minute.
	maxWriteAge = 2 * time.Minute
	// minSweep is the minimum number of writes for a sweep.
	minSweep = 1024
)

// trackedWrites are the tracked writes of a cache. The cache's lock guards them.
type trackedWrites struct {
	byKey   map[types.NamespacedName]trackedWrite
	sweepAt int // the number of writes at which the next sweep runs
}

type trackedWrite struct {
	resourceVersion string // "" for none
	versionExpires  time.Time
	deleted         types.UID // "" for none
	deletedExpires  time.Time
}

func (w trackedWrite) isEmpty() bool { return w.resourceVersion == "" && w.deleted == "" }

// expires returns max(versionExpires, deletedExpires) of the set parts.
func (w trackedWrite) expires() (last time.Time) {
	if w.resourceVersion != "" {
		last = w.versionExpires
	}
	if w.deleted != "" && w.deletedExpires.After(last) {
		last = w.deletedExpires
	}
	return last
}

// TrackWrites returns a handle that tracks its writes until the cache has received them: creates, updates, patches, applies and
// deletes, also of subresources. This includes writes by functions on top of package [dynamic]'s verbs, such as
// controller.Finalize. [Cache.WaitForWrites] waits for the writes. controller.Run waits for the writes by reconciles of an object
// before the object's next reconcile.
//
// r must be a handle on the resource of the cache's source; see [dynamic.Handle.OnWrite] for unreported writes. If the response
// to a delete has neither a UID nor a resourceVersion, the deleted object is the cached object from before the request. Memory:
// the missing writes of two minutes.
func (c *Cache[T]) TrackWrites(r *dynamic.Resource) *dynamic.Resource {
	return r.OnWrite(func(ctx context.Context, namespace, name string) func(dynamic.Write) {
		var uid types.UID
		if before := c.lookUp(types.NamespacedName{Namespace: namespace, Name: name}); before.exists() {
			uid = c.uidOf(before)
		}
		return func(w dynamic.Write) {
			w.UID = cmp.Or(w.UID, uid)
			c.RecordWrite(w)
			key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
			consistency.Record(ctx, writeID{c, key}, func(ctx context.Context) error { return c.WaitForWrites(ctx, key) })
		}
	})
}

// writeID identifies the writes to an object of a cache.
type writeID struct {
	cache any
	key   types.NamespacedName
}

// RecordWrite tracks an accepted write from outside the handles of [Cache.TrackWrites], for instance by a different client. See
// [dynamic.Write] for its fields. A write is ignored if it has neither a UID nor a resourceVersion, if its resourceVersion is not
// comparable, or if the cache does not follow its namespace or its shard. Resources of Kubernetes itself have comparable
// resourceVersions.
func (c *Cache[T]) RecordWrite(w dynamic.Write) {
	key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[c.streamOf(key.Namespace)] == nil || w.UID != "" && !c.scope.shard.Matches(w.Namespace, w.UID) {
		return
	}
	write := c.writes.byKey[key]
	expires := time.Now().Add(maxWriteAge)
	switch {
	case isReached(write.resourceVersion, w.ResourceVersion): // the response to an earlier write
		return
	case isReached(w.ResourceVersion, w.ResourceVersion):
		write.resourceVersion = w.ResourceVersion
		write.versionExpires = expires
	case w.ResourceVersion == "" && w.UID != "":
		write.deleted = w.UID
		write.deletedExpires = expires
	default:
		return
	}
	if c.writes.byKey == nil {
		c.writes.byKey = map[types.NamespacedName]trackedWrite{}
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

// missing returns the parts of write that the cache has not received. The UID counts only once the stream has reached the
// version: the version may be from the creation of the object.
func (c *Cache[T]) missing(key types.NamespacedName, write trackedWrite) trackedWrite {
	stream := c.streams[c.streamOf(key.Namespace)]
	if stream == nil {
		return trackedWrite{}
	}
	isBeforeList := stream.listing || stream.resourceVersion == "" && !stream.synced
	if isBeforeList || resourceversion.IsNewer(write.resourceVersion, stream.resourceVersion) {
		return write
	}
	write.resourceVersion = ""
	if e := c.objects.get(key); e == nil || c.uidOf(e.stored) != write.deleted {
		write.deleted = ""
	}
	return write
}

// forgetWrites drops the writes to a stream after its resourceVersion has decreased: after a restore of etcd from a backup the
// stream may never reach their versions.
func (c *Cache[T]) forgetWrites(stream string) {
	for key := range c.writes.byKey {
		if c.streamOf(key.Namespace) == stream {
			delete(c.writes.byKey, key)
		}
	}
}

// HasWrites reports whether the cache has received the writes, so [Cache.WaitForWrites] would return at once.
func (c *Cache[T]) HasWrites(keys ...types.NamespacedName) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.pendingWrites(keys)) == 0
}

// WaitForWrites waits until the cache has received the writes made through handles of [Cache.TrackWrites] before the call: writes
// to keys, or all writes without keys. Subsequent reads return the written state or a newer state:
//
//	if err := c.WaitForWrites(ctx, key); err != nil {
//		return err
//	}
//	obj, found := c.Get(key.Namespace, key.Name)
//
// It returns ctx's error if ctx ends first. It returns an error naming a write if the cache has not received the write two
// minutes after the request, if the stream of the namespace cannot be resumed for ten seconds, or if Run ends. Later calls do not
// wait for these writes. If no selector of the source includes a written object, the cache waits for the server's next bookmark,
// a minute or so.
func (c *Cache[T]) WaitForWrites(ctx context.Context, keys ...types.NamespacedName) error {
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

// waitForWrite waits for a write. It drops the write after an error, except for the end of ctx.
func (c *Cache[T]) waitForWrite(ctx context.Context, key types.NamespacedName, write pendingWrite) error {
	waitCtx, cancel := context.WithDeadlineCause(ctx, write.expires(), errExpired)
	defer cancel()
	name := c.streamOf(key.Namespace)
	stream := write.stream
	var stalled error
	w := &waiter{stream: name, version: write.resourceVersion, key: key, condition: func() bool {
		isReceived := c.streams[name] != stream || stream.restores != write.restores || c.missing(key, write.trackedWrite).isEmpty()
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

// giveUp drops the parts of write. Parts of later writes to the object stay.
func (c *Cache[T]) giveUp(key types.NamespacedName, write trackedWrite) {
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

// errExpired is the cause of a context ended by maxWriteAge.
var errExpired = errors.New("given up")

// pendingWrite is the missing part of a tracked write.
type pendingWrite struct {
	trackedWrite
	stream   *streamState
	restores int // stream.restores at the start of the wait
}

// pendingWrites returns the missing writes to keys, or all missing writes without keys.
func (c *Cache[T]) pendingWrites(keys []types.NamespacedName) map[types.NamespacedName]pendingWrite {
	var pending map[types.NamespacedName]pendingWrite
	add := func(key types.NamespacedName, write trackedWrite) {
		missing := c.missing(key, write)
		if missing.isEmpty() {
			return
		}
		if pending == nil {
			pending = map[types.NamespacedName]pendingWrite{}
		}
		stream := c.streams[c.streamOf(key.Namespace)]
		pending[key] = pendingWrite{missing, stream, stream.restores}
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
