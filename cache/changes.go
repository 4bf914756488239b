package cache

import (
	"context"
	"iter"
	"sync"

	"github.com/anykind/anykind/dynamic"
	"k8s.io/apimachinery/pkg/watch"
)

// Change is one thing that [Cache.Changes] tells.
type Change[T any] struct {
	// Type is watch.Added, watch.Modified, watch.Deleted, or dynamic.Synced: all that there was has been told.
	Type watch.EventType
	// Object is the object as it is now, or as it was at last (Deleted); nil with Synced.
	Object *T
	// Old is what the same consumer was told of the object before; nil with Added. With a resync it is Object.
	Old *T
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
	pending     map[Key]*pending[T] // the zero Key is Synced
	first, last *pending[T]         // in the order in which they are told
	ready       chan struct{}
}

// pending is what a consumer has not been told of one object.
type pending[T any] struct {
	key        Key
	told       *T // what it was told last; nil for nothing
	now        *T
	gone       bool // now is the last state of an object that is no more
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
		each.noteSynced()
	default:
	}
	c.consumers[each] = struct{}{}
	return each
}

func (c *Cache[T]) leave(each *consumer[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.consumers, each)
}

func (c *Cache[T]) tellSynced() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.synced) // with the lock, or who joins just now would be told twice
	for each := range c.consumers {
		each.noteSynced()
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
func (c *consumer[T]) note(key Key, was, now *T) { c.set(key, was, now, false) }

// noteGone notes that an object was so and, last, so, and is no more.
func (c *consumer[T]) noteGone(key Key, was, last *T) { c.set(key, was, last, true) }

func (c *consumer[T]) noteSynced() { c.set(Key{}, nil, nil, false) }

func (c *consumer[T]) set(key Key, was, now *T, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, waiting := c.pending[key]
	if !waiting {
		p = &pending[T]{key: key, told: was}
		c.push(p)
		c.wake()
	}
	p.now, p.gone = now, gone
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
		return []Change[T]{{Type: dynamic.Synced}}
	case p.told == nil:
		return []Change[T]{{Type: watch.Added, Object: p.now}}
	}
	replaced := metaOf(p.told).uid != metaOf(p.now).uid
	switch {
	case p.gone && replaced: // and its successor, too
		return []Change[T]{{Type: watch.Deleted, Object: p.told, Old: p.told}}
	case p.gone:
		return []Change[T]{{Type: watch.Deleted, Object: p.now, Old: p.told}}
	case replaced:
		return []Change[T]{{Type: watch.Deleted, Object: p.told, Old: p.told}, {Type: watch.Added, Object: p.now}}
	default:
		return []Change[T]{{Type: watch.Modified, Object: p.now, Old: p.told}}
	}
}
