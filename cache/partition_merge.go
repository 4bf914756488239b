package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/resourceversion"
	"github.com/anykind/anykind/internal/retry"
)

// partitionMerger merges the partitions of a cache. Run's goroutine owns it.
type partitionMerger[T any] struct {
	cache      *Cache[T]
	partitions []*partition[T]
	events     chan partitionEvent[T]
	all        sync.WaitGroup
	hasListed  bool // a partition has synced
}

// followPartitions applies the streams of all partitions to the cache until ctx ends, a mutation is found, or every namespace is
// rejected.
func (c *Cache[T]) followPartitions(ctx context.Context) error {
	m := &partitionMerger[T]{cache: c, events: make(chan partitionEvent[T])}
	defer m.all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := m.apply(ctx, c.takeScope())
	for err == nil && !c.mutations.check() { // a mutation is the error
		select {
		case <-ctx.Done():
		case <-c.scope.changed:
			err = m.apply(ctx, c.takeScope())
		case event := <-m.events:
			if ctx.Err() == nil { // otherwise event may be the consequence
				err = m.handle(ctx, event)
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("run cache %s: %w", c, retry.ContextError(ctx))
		}
	}
	return err
}

// start starts the goroutine of a new partition.
func (m *partitionMerger[T]) start(ctx context.Context, p *partition[T]) {
	ctx, p.stop = context.WithCancel(ctx)
	p.cache = m.cache
	p.handled = make(chan struct{}, 1)
	m.partitions = append(m.partitions, p)
	if p.audit = m.cache.newAuditor(p, p.source); p.audit != nil {
		if p.audit.continueFrom(p.continues) {
			p.resourceVersion = "" // lists the objects again
			p.hasSynced = false
			p.seen = nil
		}
		p.continues = nil
		m.all.Go(func() { p.audit.run(ctx) })
	}
	m.all.Go(func() { p.follow(ctx, m.events) })
}

// stop ends a partition. Its objects stay.
func (m *partitionMerger[T]) stop(p *partition[T]) {
	p.audit.keep()
	p.stop()
	p.isStopped = true
	m.partitions = slices.DeleteFunc(m.partitions, func(other *partition[T]) bool { return other == p })
}

func (m *partitionMerger[T]) partitionsOf(namespace string) (partitions []*partition[T]) {
	for _, p := range m.partitions {
		if p.namespace == namespace {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

// handle applies event to the cache, unless its partition has been stopped. An error ends Run.
func (m *partitionMerger[T]) handle(ctx context.Context, event partitionEvent[T]) error {
	p := event.partition
	defer p.setHandled()
	switch {
	case p.isStopped:
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
		if len(p.seen) == 0 { // otherwise the cache has later changes, too
			p.audit.progress(event.version)
		}
	case event.change.Type == dynamic.Started:
		p.rejected = nil
		p.state = ""
		m.updateStream(p.namespace, false)
	case event.change.Type == dynamic.Synced:
		m.removeMissing(p)
		p.rejected = nil
		p.hasSynced = true
		m.hasListed = true
		p.state = dynamic.Synced
		m.updateStream(p.namespace, false)
		m.updateState()
		m.probe(ctx, p)
		m.join(ctx, p.namespace)
	case event.change.Type == dynamic.NotServed:
		p.state = dynamic.NotServed
		p.seen = nil // deletions may follow, with the resourceVersions of the objects
		m.updateState()
	case event.change.Object != nil:
		m.handleChange(p, event.change)
	}
	return nil
}

// handleChange applies a change of an object, unless the cache has a newer state from another partition.
func (m *partitionMerger[T]) handleChange(p *partition[T], change dynamic.Change[T]) {
	c := m.cache
	obj := c.metaOf(change.Object)
	if !p.has(obj.GetNamespace(), obj.GetUID()) { // of a source that does not select
		return
	}
	key := KeyOf(obj)
	if p.received != nil {
		p.received[key] = struct{}{}
	}
	if p.hasSeen(obj.GetNamespace(), obj.GetUID(), obj.GetResourceVersion()) {
		return
	}
	if s := c.lookUp(key); s.exists() {
		// An object of the same name may be in another partition, which may be ahead.
		uid, version := c.versionOf(s)
		if p.hasSeen(key.Namespace, uid, obj.GetResourceVersion()) { // the stored object exists since a later resourceVersion
			return
		}
		if !p.has(key.Namespace, uid) && (change.Type == watch.Deleted || resourceversion.IsNewer(version, obj.GetResourceVersion())) {
			return
		}
	}
	c.apply(change)
}

func (m *partitionMerger[T]) interrupt(p *partition[T], i dynamic.Interruption) {
	p.progressed.isResuming = true
	if i.Relist {
		p.seen = nil
	}
	if i.Err != nil {
		p.interrupted = i.Err
	}
	m.cache.handleInterruption(p.namespace, i)
}

// handleEnd marks a partition as rejected after the end of its Follow; its goroutine starts the next Follow. An error ends Run: a panic or
// Goexit in the goroutine, or the rejection of every partition before the first list is complete.
func (m *partitionMerger[T]) handleEnd(event partitionEvent[T]) error {
	var panicErr *PanicError
	if event.retryAfter == 0 || errors.As(event.ended, &panicErr) {
		return event.ended
	}
	c := m.cache
	p := event.partition
	p.rejected = p.wrap(event.ended)
	p.state = stateRejected
	m.updateStream(p.namespace, false)
	m.updateState()
	if !m.hasListed && !slices.ContainsFunc(m.partitions, func(p *partition[T]) bool { return p.state != stateRejected }) {
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

// updateStream makes the state of a namespace that of its partitions.
func (m *partitionMerger[T]) updateStream(namespace string, isRestored bool) {
	partitions := m.partitionsOf(namespace)
	var state streamState
	for i, p := range partitions {
		state.synced = (state.synced || i == 0) && p.hasSynced
		state.unlisted = state.unlisted || !p.hasSynced
		state.listing = state.listing || !p.hasSynced && p.rejected == nil
		if i == 0 || p.resourceVersion == "" || resourceversion.IsNewer(state.resourceVersion, p.resourceVersion) {
			state.resourceVersion = p.resourceVersion
		}
		if i == 0 || p.progressed.at.Before(state.progressed.at) {
			state.progressed.at = p.progressed.at
		}
		if state.rejected == nil {
			state.rejected = p.rejected
		}
		if state.interrupted == nil {
			state.interrupted = p.interrupted
		}
	}
	m.cache.setStream(namespace, len(partitions) > 0, state, isRestored)
}

// updateState reports a change of the merged state. Synced: at least one partition is synced, and the rest are synced or rejected, or
// there is none. NotServed: at least one partition is not served.
func (m *partitionMerger[T]) updateState() {
	synced := len(m.partitions) == 0
	notServed := false
	for _, p := range m.partitions {
		synced = synced || p.state == dynamic.Synced
		notServed = notServed || p.state == dynamic.NotServed
	}
	for _, p := range m.partitions {
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
func (m *partitionMerger[T]) removeMissing(p *partition[T]) {
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
