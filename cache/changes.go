package cache

import (
	"context"
	"iter"
	"sync"

	"github.com/anykind/anykind/dynamic"
	"k8s.io/apimachinery/pkg/watch"
)

// Change is one change that [Cache.Changes] delivers.
type Change[T any] struct {
	// Type is watch.Added, watch.Modified, watch.Deleted, dynamic.Synced: all objects that there were have been
	// delivered; or dynamic.NotServed: the server does not serve the resource, whose objects are kept until Synced comes
	// again.
	Type watch.EventType
	// Object is the object as it is now, or as it was at last (Deleted); nil with Synced and NotServed.
	Object *T
	// Old is what was delivered to the same consumer before; nil with Added. With a resync it is Object.
	Old *T
	// FinalStateUnknown is set with Deleted if Object may not be the object's final state: the API did not report the
	// deletion, which a relist showed, or another object of the name followed before this consumer read the deletion.
	FinalStateUnknown bool
}

// Changes tells one consumer every object and then every change, at the consumer's own pace: the cache does not wait.
// What changes several times before the consumer comes to it is told once, as it is then; what comes and goes meanwhile
// is not told at all. So memory is bounded by the number of objects, and the last state of each is always told. An
// object that was replaced by another of its name is told as Deleted and Added.
//
// It ends without an error when ctx ends, or when Run has ended and everything has been told; breaking out of the loop
// ends it at once. Every call has its own order and begins with what there is.
func (c *Cache[T]) Changes(ctx context.Context) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		each := c.join()
		defer c.leave(each)
		for ctx.Err() == nil {
			for _, change := range each.next(c.meta) {
				if !yield(change) {
					return
				}
			}
			if each.has() {
				continue
			}
			select {
			case <-each.ready:
			case <-c.ended:
				if !each.has() {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// consumer is one loop over Changes.
type consumer[T any] struct {
	mu          sync.Mutex
	pending     map[Key]*pending[T] // the zero Key is state
	first, last *pending[T]         // in the order in which they are told
	ready       chan struct{}
	// The type of the latest change that is about no object, and of the one that was delivered last; "" for none.
	state, delivered watch.EventType
}

// pending is what a consumer has not been told of one object.
type pending[T any] struct {
	key        Key
	told       *T // what it was told last; nil for nothing
	now        *T
	gone       bool // now is the last state of an object that is no more
	inferred   bool // likewise, and the API did not report the deletion
	prev, next *pending[T]
}

// join makes a consumer that has everything before it.
func (c *Cache[T]) join() *consumer[T] {
	each := &consumer[T]{pending: map[Key]*pending[T]{}, ready: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.objects {
		each.note(key, nil, e.object)
	}
	select {
	case <-c.synced:
		each.noteState(dynamic.Synced)
	default:
	}
	if c.notServed {
		each.noteState(dynamic.NotServed)
	}
	c.consumers[each] = struct{}{}
	return each
}

func (c *Cache[T]) leave(each *consumer[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.consumers, each)
}

// setServed notifies consumers that the cache has synced, or that the resource is not served.
func (c *Cache[T]) setServed(state watch.EventType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notServed = state == dynamic.NotServed
	select {
	case <-c.synced:
	default:
		if state == dynamic.Synced {
			close(c.synced) // with the lock, or a consumer that joins just now would be notified twice
		}
	}
	for each := range c.consumers {
		each.noteState(state)
	}
}

func (c *consumer[T]) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

func (c *consumer[T]) has() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first != nil
}

// note notes that an object was so and is now so.
func (c *consumer[T]) note(key Key, was, now *T) { c.set(key, was, now, false, false) }

// noteGone notes that an object was so and, last, so, and is no more; inferred if the API did not report that.
func (c *consumer[T]) noteGone(key Key, was, last *T, inferred bool) {
	c.set(key, was, last, true, inferred)
}

// noteState queues a change that is about no object, behind all changes so far.
func (c *consumer[T]) noteState(state watch.EventType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
	if p, waiting := c.pending[Key{}]; waiting {
		c.drop(p)
	}
	c.push(&pending[T]{})
	c.wake()
}

// nextStates returns what to deliver for the latest state. NotServed is not delivered to a consumer before Synced.
func (c *consumer[T]) nextStates() (changes []Change[T]) {
	if c.delivered == "" {
		changes = append(changes, Change[T]{Type: dynamic.Synced})
		c.delivered = dynamic.Synced
	}
	if c.delivered != c.state {
		changes = append(changes, Change[T]{Type: c.state})
		c.delivered = c.state
	}
	return changes
}

func (c *consumer[T]) set(key Key, was, now *T, gone, inferred bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, waiting := c.pending[key]
	if !waiting {
		p = &pending[T]{key: key, told: was}
		c.push(p)
		c.wake()
	}
	p.now, p.gone, p.inferred = now, gone, inferred
	if gone && p.told == nil {
		c.drop(p) // it came and went, and must not be kept for a consumer who is slow
	}
}

func (c *consumer[T]) push(p *pending[T]) {
	c.pending[p.key] = p
	if p.prev = c.last; p.prev == nil {
		c.first = p
	} else {
		p.prev.next = p
	}
	c.last = p
}

func (c *consumer[T]) drop(p *pending[T]) {
	delete(c.pending, p.key)
	if p.prev == nil {
		c.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		c.last = p.prev
	} else {
		p.next.prev = p.prev
	}
}

// next takes the next object off and says what there is to tell of it.
func (c *consumer[T]) next(metaOf func(*T) meta) []Change[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.first
	if p == nil {
		return nil
	}
	c.drop(p)
	switch {
	case p.key == Key{}:
		return c.nextStates()
	case p.told == nil:
		return []Change[T]{{Type: watch.Added, Object: p.now}}
	}
	replaced := metaOf(p.told).uid != metaOf(p.now).uid
	switch {
	case p.gone && replaced: // and its successor, too
		return []Change[T]{{Type: watch.Deleted, Object: p.told, Old: p.told, FinalStateUnknown: true}}
	case p.gone:
		return []Change[T]{{Type: watch.Deleted, Object: p.now, Old: p.told, FinalStateUnknown: p.inferred}}
	case replaced:
		return []Change[T]{{Type: watch.Deleted, Object: p.told, Old: p.told, FinalStateUnknown: true}, {Type: watch.Added, Object: p.now}}
	default:
		return []Change[T]{{Type: watch.Modified, Object: p.now, Old: p.told}}
	}
}
