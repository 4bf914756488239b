package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/shard"
)

// partMerger merges the parts of a cache. Run's goroutine owns it.
type partMerger[T any] struct {
	cache  *Cache[T]
	parts  []*part[T]
	events chan partEvent[T]
	ctx    context.Context
	all    sync.WaitGroup
}

// followParts applies the streams of all parts to the cache until ctx ends, a mutation is found, or every namespace is rejected.
func (c *Cache[T]) followParts(ctx context.Context) error {
	m := &partMerger[T]{cache: c, events: make(chan partEvent[T])}
	defer m.all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.ctx = ctx
	for {
		if err := m.apply(c.takeScope()); err != nil {
			return err
		}
		if err := m.handleEvents(); err != nil {
			return err
		}
		if c.mutations.check() {
			return nil // the mutation is the error
		}
	}
}

// handleEvents handles events until the scope changes, or a mutation is found.
func (m *partMerger[T]) handleEvents() error {
	for {
		select {
		case <-m.ctx.Done():
		case <-m.cache.scope.changed:
			return nil
		case event := <-m.events:
			if m.ctx.Err() != nil { // event may be the consequence
				break
			}
			if !event.part.isStopped {
				if err := m.handle(event); err != nil {
					return err
				}
			}
			event.part.setHandled()
			if m.cache.mutations.check() {
				return nil
			}
			continue
		}
		return fmt.Errorf("run cache %s: %w", m.cache, retry.ContextError(m.ctx))
	}
}

// apply starts and stops parts, so that together they have the objects of a scope.
func (m *partMerger[T]) apply(s scope) error {
	for _, p := range slices.Clone(m.parts) {
		kept := shard.New(p.shard.Field())
		if slices.Contains(s.namespaces, p.namespace) {
			kept = p.shard.Intersect(s.shard)
		}
		if !kept.Equal(p.shard) {
			m.narrow(p, kept)
		}
	}
	for _, namespace := range s.namespaces {
		missing := s.shard
		for _, p := range m.partsOf(namespace) {
			missing = missing.Subtract(p.shard)
		}
		if missing.IsNothing() {
			continue
		}
		source, err := m.cache.sourceOf(namespace)
		if err != nil {
			return err
		}
		m.start(&part[T]{namespace: namespace, shard: missing, source: source})
	}
	for _, namespace := range slices.AppendSeq(slices.Clone(s.namespaces), maps.Keys(m.cache.streams)) {
		m.updateStream(namespace, false)
	}
	m.updateState()
	m.cache.setApplied(s)
	return nil
}

// narrow replaces a part by one with fewer objects, or none, and removes the others from the cache.
func (m *partMerger[T]) narrow(p *part[T], kept shard.Selector) {
	m.stop(p)
	for _, key := range p.keys() {
		if uid := m.cache.uidOf(m.cache.lookUp(key)); !kept.Matches(key.Namespace, uid) {
			m.cache.remove(key, update[T]{removed: true})
		}
	}
	if !kept.IsNothing() {
		m.start(m.continued(kept, p))
	}
}

// continued returns a part that continues others, whose objects it has.
func (m *partMerger[T]) continued(selector shard.Selector, others ...*part[T]) *part[T] {
	first := others[0]
	next := &part[T]{
		namespace: first.namespace, shard: selector, source: first.source,
		resourceVersion: first.resourceVersion, hasSynced: first.hasSynced,
	}
	for _, p := range others {
		if isNewer(next.resourceVersion, p.resourceVersion) {
			next.resourceVersion = p.resourceVersion
		}
	}
	for _, p := range others {
		next.seen = append(next.seen, p.seen...)
		if isNewer(p.resourceVersion, next.resourceVersion) {
			next.seen = append(next.seen, seenPart{p.shard, p.resourceVersion})
		}
	}
	if !m.cache.hasHandle() { // which emits everything again
		next.resourceVersion = ""
		next.received = map[types.NamespacedName]struct{}{}
	}
	return next
}

func (m *partMerger[T]) start(p *part[T]) {
	var ctx context.Context
	ctx, p.stop = context.WithCancel(m.ctx)
	p.cache = m.cache
	p.handled = make(chan struct{}, 1)
	m.parts = append(m.parts, p)
	m.all.Go(func() { p.follow(ctx, m.events) })
}

// stop ends a part. Its objects stay.
func (m *partMerger[T]) stop(p *part[T]) {
	p.stop()
	p.isStopped = true
	m.parts = slices.DeleteFunc(m.parts, func(other *part[T]) bool { return other == p })
}

func (m *partMerger[T]) partsOf(namespace string) (parts []*part[T]) {
	for _, p := range m.parts {
		if p.namespace == namespace {
			parts = append(parts, p)
		}
	}
	return parts
}

// handle applies event to the cache. An error ends Run.
func (m *partMerger[T]) handle(event partEvent[T]) error {
	p := event.part
	switch {
	case event.ended != nil:
		return m.handleEnd(event)
	case event.unsharded:
		m.cache.unsharded.Store(true)
	case event.interruption != nil:
		i := *event.interruption
		i.Err = p.wrap(i.Err)
		m.interrupt(p, i)
	case event.version != "": // the initial list is complete
		m.removeMissing(p)
		m.updateStream(p.namespace, p.setVersion(event.version))
	case event.change.Type == dynamic.Started:
		p.rejected = nil
		p.state = ""
		m.updateStream(p.namespace, false)
	case event.change.Type == dynamic.Synced:
		m.removeMissing(p)
		p.rejected = nil
		p.hasSynced = true
		p.state = dynamic.Synced
		m.updateStream(p.namespace, false)
		m.updateState()
		m.join(p.namespace)
	case event.change.Type == dynamic.NotServed:
		p.state = dynamic.NotServed
		m.updateState()
	case event.change.Object != nil:
		m.handleChange(p, event.change)
	}
	return nil
}

// handleChange applies a change of an object, unless the cache has a newer state from another part.
func (m *partMerger[T]) handleChange(p *part[T], change dynamic.Change[T]) {
	c := m.cache
	obj := c.metaOf(change.Object)
	if !p.has(obj.GetNamespace(), obj.GetUID()) { // of a source that does not select
		return
	}
	key := KeyOf(obj)
	if p.received != nil {
		p.received[key] = struct{}{}
	}
	if !change.FinalStateUnknown && p.hasSeen(obj) {
		return
	}
	if s := c.lookUp(key); s.exists() {
		// An object of the same name may be in another part, which may be ahead.
		uid, version := c.versionOf(s)
		if !p.has(key.Namespace, uid) && (change.Type == watch.Deleted || isNewer(version, obj.GetResourceVersion())) {
			return
		}
	}
	c.apply(change)
}

func (m *partMerger[T]) interrupt(p *part[T], i dynamic.Interruption) {
	if i.Relist {
		p.seen = nil
	}
	if i.Err != nil {
		p.interrupted = i.Err
	}
	m.cache.handleInterruption(p.namespace, i)
}

// handleEnd marks a part as rejected after the end of its Follow; its goroutine starts the next Follow. An error ends Run: a panic or
// Goexit in the goroutine, or the rejection of every part.
func (m *partMerger[T]) handleEnd(event partEvent[T]) error {
	var panicErr *PanicError
	if event.retryAfter == 0 || errors.As(event.ended, &panicErr) {
		return event.ended
	}
	c := m.cache
	p := event.part
	p.rejected = p.wrap(event.ended)
	p.state = stateRejected
	m.updateStream(p.namespace, false)
	m.updateState()
	if !slices.ContainsFunc(m.parts, func(p *part[T]) bool { return p.state != stateRejected }) {
		if c.opts.Namespaces == nil {
			return p.rejected
		}
		return fmt.Errorf("run cache %s: every namespace is rejected: %w", c, c.joinErrors(rejection))
	}
	if !c.hasHandle() {
		p.received = map[types.NamespacedName]struct{}{}
	}
	p.rejections++
	m.interrupt(p, dynamic.Interruption{Err: p.rejected, Relist: true, Delay: event.retryAfter, Count: p.rejections})
	return nil
}

// join replaces the synced parts of a namespace by one, which continues at the earliest of their resourceVersions: each part costs a
// watch.
func (m *partMerger[T]) join(namespace string) {
	parts := m.partsOf(namespace)
	if len(parts) < 2 || !m.cache.hasHandle() {
		return
	}
	joined := parts[0].shard
	for _, p := range parts {
		if p.state != dynamic.Synced || !isReached(p.resourceVersion, p.resourceVersion) {
			return
		}
		joined = joined.Union(p.shard)
	}
	for _, p := range parts {
		m.stop(p)
	}
	m.start(m.continued(joined, parts...))
	m.updateStream(namespace, false)
}

// updateStream makes the state of a namespace that of its parts.
func (m *partMerger[T]) updateStream(namespace string, isRestored bool) {
	parts := m.partsOf(namespace)
	var state streamState
	for i, p := range parts {
		state.synced = (state.synced || i == 0) && p.hasSynced
		state.listing = state.listing || !p.hasSynced && p.rejected == nil
		if i == 0 || p.resourceVersion == "" || isNewer(state.resourceVersion, p.resourceVersion) {
			state.resourceVersion = p.resourceVersion
		}
		if state.rejected == nil {
			state.rejected = p.rejected
		}
		if state.interrupted == nil {
			state.interrupted = p.interrupted
		}
	}
	m.cache.setStream(namespace, len(parts) > 0, state, isRestored)
}

// updateState reports a change of the merged state. Synced: at least one part is synced, and the rest are synced or rejected, or
// there is none. NotServed: at least one part is not served.
func (m *partMerger[T]) updateState() {
	synced := len(m.parts) == 0
	notServed := false
	for _, p := range m.parts {
		synced = synced || p.state == dynamic.Synced
		notServed = notServed || p.state == dynamic.NotServed
	}
	for _, p := range m.parts {
		synced = synced && (p.state == dynamic.Synced || p.state == stateRejected)
	}
	isReady := m.cache.synced && !m.cache.notServed // the last reported state
	switch {
	case synced && !isReady:
		m.cache.setServed(dynamic.Synced)
	case notServed && isReady:
		m.cache.setServed(dynamic.NotServed)
	}
}

// removeMissing ends a repeated initial list.
func (m *partMerger[T]) removeMissing(p *part[T]) {
	if p.received == nil {
		return
	}
	for _, key := range p.keys() {
		if _, found := p.received[key]; !found {
			m.cache.remove(key, update[T]{deleted: true, finalStateUnknown: true})
		}
	}
	p.received = nil
}
