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
	// Type is watch.Added, watch.Modified, watch.Deleted, dynamic.Synced or dynamic.NotServed. Synced follows the initial
	// objects. After NotServed the server does not serve the resource: the objects are kept until the next Synced.
	Type watch.EventType
	// Object is the current state of the object, or its final state (Deleted); nil with Synced and NotServed.
	Object *T
	// Old is the state previously delivered to this consumer; nil with Added. In a resync it equals Object.
	Old *T
	// FinalStateUnknown is set with Deleted if Object may not be the final state: either a relist revealed an unreported
	// deletion, or an object with the same name was created before the consumer took the deletion.
	FinalStateUnknown bool
	// Merged is set with Modified if the cache had further states of the object between Old and Object.
	Merged bool
}

// Changes returns every object and then every change, at the pace of the consumer: the cache does not wait. Pending changes of an
// object are merged into a single change with the latest state. An object that is created and deleted meanwhile is not delivered.
// So memory is bounded by the number of objects, and the latest state of each object is always delivered. A replaced object (same
// name, new UID) is delivered as Deleted and Added.
//
// The sequence ends without an error when ctx ends, or after the end of Run once everything is delivered. Every call is a
// separate consumer with its own order, and starts with all objects.
func (c *Cache[T]) Changes(ctx context.Context) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		consumer := c.subscribe()
		defer c.unsubscribe(consumer)
		for ctx.Err() == nil {
			hasStopped := isClosed(c.stopped) // before next: nothing is queued after the stop
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

// consumer holds the pending changes of a loop over Changes: at most one per object, in the order of each object's first change
// since its last delivery.
type consumer[T any] struct {
	mu           sync.Mutex
	pending      map[types.NamespacedName]*pendingChange[T] // of objects
	pendingState *pendingChange[T]                          // of the resource, nil for none
	hadMany      bool                                       // len(pending) has reached maxPendingKept since the map was made
	root         pendingChange[T]                           // sentinel of the ring of pending changes: next is the first, prev the last
	ready        chan struct{}
	// state is the latest change without an object (Synced or NotServed). deliveredState is the latest delivered state.
	state, deliveredState watch.EventType
}

// pendingChange is the change of an object, or of the state of the resource, since its last delivery.
type pendingChange[T any] struct {
	key          types.NamespacedName
	delivered    stored[T]   // the last delivered state
	stateChanges []Change[T] // of isState, in place of an object
	isState      bool        // of Synced or NotServed; the key is empty
	merged       bool        // further states since delivered
	returned     bool        // the object has left the scope of the cache since delivered
	update[T]
	prev, next *pendingChange[T]
}

type update[T any] struct {
	object            stored[T]
	deleted           bool // object is the final state
	removed           bool // object has left the scope of the cache
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
	added := newConsumer[T]()
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.objects.all() {
		added.queue(key, stored[T]{}, update[T]{object: e.stored})
	}
	if c.synced {
		added.queueState(dynamic.Synced)
	}
	if c.notServed {
		added.queueState(dynamic.NotServed)
	}
	if c.consumers == nil {
		c.consumers = map[*consumer[T]]struct{}{}
	}
	c.consumers[added] = struct{}{}
	return added
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

// queue adds an update of an object, or merges the update into the pending change. old is the object's previous state.
func (c *consumer[T]) queue(key types.NamespacedName, old stored[T], u update[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, found := c.pending[key]
	if !found {
		p = &pendingChange[T]{key: key, delivered: old}
		c.push(p)
		c.wake()
	} else {
		p.merged = p.merged || p.object != p.delivered && p.object != u.object
		p.returned = p.returned || p.removed
	}
	p.update = u
	if (u.deleted || u.removed) && !p.delivered.exists() {
		c.drop(p) // created and deleted: not kept for a slow consumer
	}
}

// queueState adds a change without an object, behind all pending changes.
func (c *consumer[T]) queueState(state watch.EventType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
	if c.pendingState != nil {
		c.drop(c.pendingState)
	}
	c.push(&pendingChange[T]{isState: true})
	c.wake()
}

// maxPendingKept: a pending map of at least this size is replaced once it is empty, because maps do not shrink.
const maxPendingKept = 256

func (c *consumer[T]) push(p *pendingChange[T]) {
	if p.isState {
		c.pendingState = p
	} else {
		c.pending[p.key] = p
		c.hadMany = c.hadMany || len(c.pending) >= maxPendingKept
	}
	p.prev = c.root.prev
	p.next = &c.root
	p.prev.next = p
	p.next.prev = p
}

func (c *consumer[T]) drop(p *pendingChange[T]) {
	if p.isState {
		c.pendingState = nil
	} else {
		delete(c.pending, p.key)
	}
	if c.hadMany && len(c.pending) == 0 { // a map does not shrink
		c.pending = map[types.NamespacedName]*pendingChange[T]{}
		c.hadMany = false
	}
	p.prev.next = p.next
	p.next.prev = p.prev
}

// next removes and returns the first pending change, or nil.
func (c *consumer[T]) next() *pendingChange[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.root.next
	if p == &c.root {
		return nil
	}
	c.drop(p)
	if p.isState {
		p.stateChanges = c.nextStates()
	}
	return p
}

func (c *Cache[T]) changesOf(p *pendingChange[T]) []Change[T] {
	if p.isState {
		return p.stateChanges
	}
	object := c.load(p.object)
	switch {
	case object == nil: // the object cannot be unpacked: Run ends
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
	removed := Change[T]{Type: Removed, Object: old, Old: old}
	switch {
	case p.removed:
		return []Change[T]{removed}
	case p.returned && !p.deleted: // meanwhile changes were not seen
		return []Change[T]{removed, {Type: watch.Added, Object: object}}
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
		return []Change[T]{{Type: watch.Modified, Object: object, Old: old, Merged: p.merged}}
	}
}

// nextStates returns the changes to deliver for the latest state. Synced is each consumer's first state.
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
