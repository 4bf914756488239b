package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/shard"
)

// shards limits a runner to the keys of its member of Options.Sharding. A key's hash is that of its namespace, or of its object's UID in
// the cache. A key whose hash belongs to a different member is dropped: the object is added again when it comes back. A key that may not
// begin yet is parked, until the caches have all objects of its range or the member's lease is renewed again.
type shards struct {
	runner  *runner[types.NamespacedName]
	group   *sharding.Group
	fence   *sharding.Fence
	uidOf   func(types.NamespacedName) types.UID // "" for a missing object
	onDrop  func(types.NamespacedName)
	deleted sync.Map // keys of deleted objects to their last UIDs, until they are reconciled or dropped

	mu     sync.Mutex
	parked map[types.NamespacedName]struct{}
}

// shardRunner limits a runner to the keys of Options.Sharding. The first cache has the reconciled objects.
func shardRunner(r *runner[types.NamespacedName], uidOf func(types.NamespacedName) types.UID, caches ...triggerCache) (*shards, error) {
	s := &shards{runner: r, group: r.opts.Sharding, uidOf: uidOf, onDrop: func(types.NamespacedName) {}, parked: map[types.NamespacedName]struct{}{}}
	var sharded []sharding.Cache
	for i, c := range caches {
		field := c.Shard().Field()
		switch {
		case field == s.group.Field():
			sharded = append(sharded, c)
		case i == 0:
			return nil, fmt.Errorf("run a controller: Options.Sharding is by %q, but the shard of its cache is by %q (set cache.Options.Shard)", s.group.Field(), field)
		case field != "":
			return nil, fmt.Errorf("run a controller: Options.Sharding is by %q, but the shard of a trigger's cache is by %q", s.group.Field(), field)
		}
	}
	fence, err := s.group.NewFence(s.unpark, sharded...)
	if err != nil {
		return nil, fmt.Errorf("run a controller: %w", err)
	}
	s.fence = fence
	r.isOwned = s.isOwned
	r.begin = s.begin
	return s, nil
}

// hashOf returns the hash of a key. ok is false for a missing object, unless the cache has received its deletion.
func (s *shards) hashOf(key types.NamespacedName) (hash uint64, ok bool) {
	if s.group.Field() == shard.Namespace {
		return shard.Hash(key.Namespace), true
	}
	if uid := s.uidOf(key); uid != "" {
		return shard.Hash(string(uid)), true
	}
	uid, ok := s.deleted.Load(key)
	if !ok {
		return 0, false
	}
	return shard.Hash(string(uid.(types.UID))), true
}

// isOwned reports whether the member owns a key from the queue. Otherwise it drops the key.
func (s *shards) isOwned(key types.NamespacedName) bool {
	if hash, ok := s.hashOf(key); ok && s.fence.Owns(hash) {
		return true
	}
	s.runner.waited.Delete(key)
	s.deleted.Delete(key)
	s.onDrop(key)
	s.runner.queue.Forget(key)
	s.runner.queue.Done(key)
	return false
}

// begin begins the reconcile of a key from the queue. The caller calls end with the error of the reconcile. If ok is false, the key is
// dropped or parked.
func (s *shards) begin(ctx context.Context, key types.NamespacedName) (_ context.Context, end func(error), ok bool) {
	deleted, isDeleted := s.deleted.Load(key)
	hash, ok := s.hashOf(key)
	if ok {
		if ctx, endTask, ok := s.fence.Begin(ctx, hash); ok {
			return ctx, func(err error) {
				endTask()
				if err == nil && isDeleted {
					s.deleted.CompareAndDelete(key, deleted)
				}
			}, true
		}
	}
	if !s.isOwned(key) {
		return nil, nil, false
	}
	s.mu.Lock()
	s.parked[key] = struct{}{}
	s.mu.Unlock()
	s.runner.queue.Done(key)
	if s.fence.Admits(hash) { // meanwhile
		s.unpark()
	}
	return nil, nil, false
}

// unpark adds the parked keys to the queue again.
func (s *shards) unpark() {
	s.mu.Lock()
	parked := s.parked
	s.parked = map[types.NamespacedName]struct{}{}
	s.mu.Unlock()
	for key := range parked {
		s.runner.queue.Add(key)
	}
}
