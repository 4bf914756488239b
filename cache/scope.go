package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/resourceversion"
	"github.com/anykind/anykind/shard"
)

// Removed is the type of a [Change] for an object that left the namespaces or the shard of a cache, see [Cache.SetNamespaces],
// [Cache.SetShard] and [ErrRemoved]. The object may exist: its last state is Object.
const Removed watch.EventType = "REMOVED"

// ErrRemoved is a cause of the end of Run's ctx. Run then removes all objects from the cache, with changes of type [Removed].
var ErrRemoved = errors.New("the objects are removed from the cache")

// removeAll removes all objects. Only Run's goroutine calls it.
func (c *Cache[T]) removeAll() {
	c.mu.RLock()
	keys := make([]types.NamespacedName, 0, c.objects.count())
	for key := range c.objects.all() {
		keys = append(keys, key)
	}
	c.mu.RUnlock()
	for _, key := range keys {
		c.remove(key, update[T]{removed: true})
	}
}

// scope is what a cache of partitions is to contain. The cache's lock guards it.
type scope struct {
	namespaces []string // of Options.Namespaces; "" alone without them
	shard      shard.Selector
	isNew      bool          // Run has not applied it yet
	changed    chan struct{} // receives after a change
}

func newScope[T any](opts *Options[T]) scope {
	s := scope{namespaces: []string{""}, shard: opts.Shard, changed: make(chan struct{}, 1)}
	if opts.Namespaces != nil {
		s.namespaces = slices.Clone(opts.Namespaces)
	}
	if s.shard.Field() == "" { // a selector without a field cannot select nothing
		s.shard = shard.New(shard.UID, shard.All()...)
	}
	s.isNew = opts.Namespaces != nil || opts.Shard.Field() != ""
	return s
}

// isPartitioned reports whether the objects come in partitions.
func (c *Cache[T]) isPartitioned() bool {
	return c.opts.Namespaces != nil || c.opts.Shard.Field() != ""
}

// SetShard changes the shard of a cache that has Options.Shard, and returns at once. Objects that leave the shard are removed, with a
// change of type [Removed]. Objects that the shard gains are listed, while the others stay current: [Cache.WaitForSync] waits for
// them. The field must stay the same.
func (c *Cache[T]) SetShard(selector shard.Selector) error {
	if c.opts.Shard.Field() == "" || selector.Field() != c.opts.Shard.Field() {
		return fmt.Errorf("set the shard of cache %s: by %q, but Options.Shard is by %q", c, selector.Field(), c.opts.Shard.Field())
	}
	c.setScope(func(s *scope) { s.shard = selector })
	return nil
}

// Shard returns the shard of the cache: Options.Shard, or the argument of the last SetShard. It is the zero value for a cache without
// Options.Shard.
func (c *Cache[T]) Shard() shard.Selector {
	if c.opts.Shard.Field() == "" {
		return shard.Selector{}
	}
	return c.takeScope().shard
}

// SetNamespaces changes the namespaces of a cache that has Options.Namespaces, and returns at once. Objects of other namespaces are
// removed, with changes of type [Removed]. Without an argument the cache becomes empty. [Cache.WaitForSync] waits for new
// namespaces.
func (c *Cache[T]) SetNamespaces(namespaces ...string) error {
	if c.opts.Namespaces == nil {
		return fmt.Errorf("set the namespaces of cache %s: it has none (set Options.Namespaces, to an empty list for no namespace)", c)
	}
	for _, namespace := range namespaces {
		if _, err := c.sourceOf(namespace); err != nil {
			return err
		}
	}
	c.setScope(func(s *scope) { s.namespaces = slices.Clone(namespaces) })
	return nil
}

func (c *Cache[T]) setScope(set func(*scope)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set(&c.scope)
	c.scope.isNew = true
	select {
	case c.scope.changed <- struct{}{}:
	default:
	}
}

// IsSharded reports whether the server selects the objects of Options.Shard, with the feature gate ShardedListAndWatch. Otherwise the
// cache drops the objects of other shards. The server does not select if it has sent such an object. Before that the result is that of
// [dynamic.Handle.ProbeSharding], by a request after the first list. isKnown is false without a response, for instance because the
// user may not read the namespaces.
func (c *Cache[T]) IsSharded() (byServer, isKnown bool) {
	probed := c.probed.Load()
	switch {
	case c.opts.Shard.Field() == "" || c.unsharded.Load():
		return false, true
	case probed == nil:
		return false, false
	default:
		return *probed, true
	}
}

// probe asks the server whether it selects the objects of a shard.
func (m *partitionMerger[T]) probe(ctx context.Context, p *partition[T]) {
	source, isProber := p.source.(interface {
		ProbeSharding(ctx context.Context) (isSharded bool, err error)
	})
	if !isProber || m.cache.opts.Shard.Field() == "" {
		return
	}
	m.all.Go(func() {
		if isSharded, err := source.ProbeSharding(ctx); err == nil {
			m.cache.probed.Store(&isSharded)
		}
	})
}

// takeScope returns the scope to apply.
func (c *Cache[T]) takeScope() scope {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.scope
}

// setApplied records that Run has applied a scope, unless it has changed in the meantime.
func (c *Cache[T]) setApplied(applied scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(applied.namespaces, c.scope.namespaces) && applied.shard.Equal(c.scope.shard) {
		c.scope.isNew = false
		c.waiters.evaluateAll()
	}
}

// apply starts and stops partitions, so that together they have the objects of a scope.
func (m *partitionMerger[T]) apply(ctx context.Context, s scope) error {
	for _, p := range slices.Clone(m.partitions) {
		kept := shard.New(p.shard.Field())
		if slices.Contains(s.namespaces, p.namespace) {
			kept = p.shard.Intersect(s.shard)
		}
		if !kept.Equal(p.shard) {
			m.narrow(ctx, p, kept)
		}
	}
	for _, namespace := range s.namespaces {
		missing := s.shard
		for _, p := range m.partitionsOf(namespace) {
			missing = missing.Subtract(p.shard)
		}
		if missing.IsNothing() {
			continue
		}
		source, err := m.cache.sourceOf(namespace)
		if err != nil {
			return err
		}
		m.start(ctx, &partition[T]{namespace: namespace, shard: missing, source: source})
	}
	for _, namespace := range slices.AppendSeq(slices.Clone(s.namespaces), maps.Keys(m.cache.streams)) {
		m.updateStream(namespace, false)
	}
	m.updateState()
	m.cache.setApplied(s)
	return nil
}

// narrow replaces a partition by one with fewer objects, or none, and removes the others from the cache.
func (m *partitionMerger[T]) narrow(ctx context.Context, p *partition[T], kept shard.Selector) {
	m.stop(p)
	for _, key := range p.keys() {
		if uid := m.cache.uidOf(m.cache.lookUp(key)); !kept.Matches(key.Namespace, uid) {
			m.cache.remove(key, update[T]{removed: true})
		}
	}
	m.cache.forgetLeftOutOf(p, kept)
	if !kept.IsNothing() {
		m.start(ctx, m.continued(kept, p))
	}
}

// continued returns a partition that continues others, whose objects it has.
func (m *partitionMerger[T]) continued(selector shard.Selector, others ...*partition[T]) *partition[T] {
	first := others[0]
	next := &partition[T]{
		namespace: first.namespace, shard: selector, source: first.source,
		resourceVersion: first.resourceVersion, hasSynced: first.hasSynced, progressed: progressTime{first.progressed.at, true},
	}
	for _, p := range others {
		if resourceversion.IsNewer(next.resourceVersion, p.resourceVersion) {
			next.resourceVersion = p.resourceVersion
		}
		if p.progressed.at.Before(next.progressed.at) {
			next.progressed.at = p.progressed.at
		}
	}
	for _, p := range others {
		if p.audit != nil {
			next.continues = append(next.continues, p.audit)
		}
		next.seen = append(next.seen, p.seen...)
		if resourceversion.IsNewer(p.resourceVersion, next.resourceVersion) {
			next.seen = append(next.seen, seenPartition{p.shard, p.resourceVersion})
		}
	}
	if !m.cache.hasHandle() { // which emits everything again
		next.resourceVersion = ""
		next.hasSynced = false
		next.received = map[types.NamespacedName]struct{}{}
	}
	return next
}

// join replaces the synced partitions of a namespace by one, which continues at the earliest of their resourceVersions: each costs a
// watch.
func (m *partitionMerger[T]) join(ctx context.Context, namespace string) {
	partitions := m.partitionsOf(namespace)
	if len(partitions) < 2 || !m.cache.hasHandle() {
		return
	}
	joined := partitions[0].shard
	for _, p := range partitions {
		if p.state != dynamic.Synced || !isReached(p.resourceVersion, p.resourceVersion) {
			return
		}
		joined = joined.Union(p.shard)
	}
	for _, p := range partitions {
		m.stop(p)
	}
	m.start(ctx, m.continued(joined, partitions...))
	m.updateStream(namespace, false)
}
