package cache

import (
	"context"
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
)

// Change is a change of a cache's objects.
type Change[T any] struct {
	// Type is watch.Added, watch.Modified or watch.Deleted; dynamic.Synced once all initial objects have been delivered; or
	// dynamic.NotServed while the server does not serve the resource, whose objects are kept until Synced comes again.
	Type watch.EventType
	// Object is the current state of the object, or its final state (Deleted); nil with Synced and NotServed.
	Object *T
	// Old is the state that was delivered to the same consumer before; nil with Added. In a resync it is Object.
	Old *T
	// FinalStateUnknown is set with Deleted if Object may not be the final state: a relist revealed the deletion, which the
	// API did not report, or another object of the name was created before the consumer took the deletion.
	FinalStateUnknown bool
}

// Changes returns every object and then every change, at the pace of the consumer: the cache does not wait for it. Several
// changes of one object before the consumer takes the next are merged into one, with the last state; an object that is
// created and deleted meanwhile is not delivered. So memory is bounded by the number of objects, and the last state of each
// is always delivered. An object that was replaced by another of its name is delivered as Deleted and Added.
//
// The sequence ends without an error when ctx ends, and when Run has ended and everything is delivered. Every call is a
// consumer of its own, with its own order, and begins with all objects.
func (c *Cache[T]) Changes(ctx context.Context) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		consumer := c.subscribe()
		defer c.unsubscribe(consumer)
		for ctx.Err() == nil {
			hasStopped := isClosed(c.stopped) // before next: nothing is queued after that
			if pending := consumer.next(); pending != nil {
				for _, change := range c.changesOf(pending) {
					if !yield(change) {
						return
					}
				}
				continue
			}
			if hasStopped {
				return
			}
			select {
			case <-consumer.ready:
			case <-c.stopped:
			case <-ctx.Done():
			}
		}
	}
}

// consumer has the pending changes of one loop over Changes: at most one for each object, in the order in which the
// objects first changed since they were delivered.
type consumer[T any] struct {
	mu      sync.Mutex
	pending map[types.NamespacedName]*pendingChange[T] // the zero Key stands for state
	hadMany bool                                       // pending has had maxPendingKept entries since it was made
	root    pendingChange[T]                           // of the ring of pending changes: the first is next, the last is prev
	ready   chan struct{}
	// state is the type of the latest change without an object, deliveredState that of the last one that was delivered.
	state, deliveredState watch.EventType
}

// pendingChange is the change of one object since its last delivery.
type pendingChange[T any] struct {
	key          types.NamespacedName
	delivered    stored[T]   // the state that was delivered last
	stateChanges []Change[T] // to deliver instead of an object
	update[T]
	prev, next *pendingChange[T]
}

type update[T any] struct {
	object            stored[T]
	deleted           bool // object is the final state
	finalStateUnknown bool // of a deleted object
}

func newConsumer[T any]() *consumer[T] {
	c := &consumer[T]{pending: map[types.NamespacedName]*pendingChange[T]{}, ready: make(chan struct{}, 1)}
	c.root.prev = &c.root
	c.root.next = &c.root
	return c
}

// subscribe returns a consumer with all objects pending.
func (c *Cache[T]) subscribe() *consumer[T] {
	consumer := newConsumer[T]()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.objects.all() {
		consumer.queue(key, stored[T]{}, update[T]{object: e.stored})
	}
	if c.synced {
		consumer.queueState(dynamic.Synced)
	}
	if c.notServed {
		consumer.queueState(dynamic.NotServed)
	}
	c.consumers[consumer] = struct{}{}
	return consumer
}

func (c *Cache[T]) unsubscribe(consumer *consumer[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.consumers, consumer)
}

// setServed records Synced or NotServed and queues it for the consumers.
func (c *Cache[T]) setServed(state watch.EventType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notServed = state == dynamic.NotServed
	if state == dynamic.Synced {
		c.synced = true
		if only := c.streams[""]; only != nil {
			only.synced = true
		}
		c.waiters.evaluateAll()
	}
	for consumer := range c.consumers {
		consumer.queueState(state)
	}
}

func (c *consumer[T]) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// queue adds an object's update, or merges it into the pending change. old is the object's state before.
func (c *consumer[T]) queue(key types.NamespacedName, old stored[T], u update[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, found := c.pending[key]
	if !found {
		p = &pendingChange[T]{key: key, delivered: old}
		c.push(p)
		c.wake()
	}
	p.update = u
	if u.deleted && !p.delivered.exists() {
		c.drop(p) // created and deleted: not kept for a slow consumer
	}
}

// queueState adds a change without an object, behind all pending changes.
func (c *consumer[T]) queueState(state watch.EventType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
	if p, found := c.pending[types.NamespacedName{}]; found {
		c.drop(p)
	}
	c.push(&pendingChange[T]{})
	c.wake()
}

// maxPendingKept is the number of changes below which the map of pending ones keeps its memory.
const maxPendingKept = 256

func (c *consumer[T]) push(p *pendingChange[T]) {
	c.pending[p.key] = p
	c.hadMany = c.hadMany || len(c.pending) >= maxPendingKept
	p.prev = c.root.prev
	p.next = &c.root
	p.prev.next = p
	p.next.prev = p
}

func (c *consumer[T]) drop(p *pendingChange[T]) {
	delete(c.pending, p.key)
	if c.hadMany && len(c.pending) == 0 { // a map does not shrink
		c.pending = map[types.NamespacedName]*pendingChange[T]{}
		c.hadMany = false
	}
	p.prev.next = p.next
	p.next.prev = p.prev
}

// next removes and returns the first pending change, nil for none.
func (c *consumer[T]) next() *pendingChange[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.root.next
	if p == &c.root {
		return nil
	}
	c.drop(p)
	if p.key == (types.NamespacedName{}) {
		p.stateChanges = c.nextStates()
	}
	return p
}

func (c *Cache[T]) changesOf(p *pendingChange[T]) []Change[T] {
	if p.key == (types.NamespacedName{}) {
		return p.stateChanges
	}
	object := c.load(p.object)
	switch {
	case object == nil: // Run ends, since it cannot be unpacked
		return nil
	case !p.delivered.exists():
		return []Change[T]{{Type: watch.Added, Object: object}}
	}
	old := object
	if p.delivered != p.object {
		old = c.load(p.delivered)
	}
	if old == nil {
		return nil
	}
	replaced := c.uidOf(p.delivered) != c.uidOf(p.object)
	deleted := Change[T]{Type: watch.Deleted, Object: old, Old: old, FinalStateUnknown: true}
	switch {
	case p.deleted && replaced: // its successor is deleted, too
		return []Change[T]{deleted}
	case p.deleted:
		return []Change[T]{{Type: watch.Deleted, Object: object, Old: old, FinalStateUnknown: p.finalStateUnknown}}
	case replaced:
		return []Change[T]{deleted, {Type: watch.Added, Object: object}}
	default:
		return []Change[T]{{Type: watch.Modified, Object: object, Old: old}}
	}
}

// nextStates returns what to deliver for the latest state. Synced is the first that every consumer gets.
func (c *consumer[T]) nextStates() (changes []Change[T]) {
	if c.deliveredState == "" {
		changes = append(changes, Change[T]{Type: dynamic.Synced})
		c.deliveredState = dynamic.Synced
	}
	if c.deliveredState != c.state {
		changes = append(changes, Change[T]{Type: c.state})
		c.deliveredState = c.state
	}
	return changes
}
