package cache

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Entry is an object of a cache with its key. Of a packed object, the key, the UID, the resourceVersion and the labels are read
// without Unpack.
type Entry[T any] struct {
	types.NamespacedName

	cache     *Cache[T]
	stored    stored[T]
	positions *position[T]
}

// UID returns the UID of the object.
func (e Entry[T]) UID() types.UID { return e.cache.uidOf(e.stored) }

// ResourceVersion returns the resourceVersion of the object.
func (e Entry[T]) ResourceVersion() string {
	_, resourceVersion := e.cache.versionOf(e.stored)
	return resourceVersion
}

// Labels returns the labels of the object.
func (e Entry[T]) Labels() labels.Labels { return e.cache.labelsOf(e.stored) }

// Cache returns the cache of the object.
func (e Entry[T]) Cache() *Cache[T] { return e.cache }

// IndexValues yields the values of the object in an index of Options.Indexes or Options.SharedIndexes, in no order, without Unpack.
func (e Entry[T]) IndexValues(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for p := e.positions; p != nil; p = p.next {
			if p.bucket.index.name == name && !yield(p.bucket.value) {
				return
			}
		}
	}
}

func (e Entry[T]) hasIndexValue(name, value string) bool {
	for v := range e.IndexValues(name) {
		if v == value {
			return true
		}
	}
	return false
}

// Object returns the object, or nil after an [UnpackError].
func (e Entry[T]) Object() *T { return e.cache.load(e.stored) }

// Entry returns the entry of an object. namespace is "" for a cluster-scoped object.
func (c *Cache[T]) Entry(namespace, name string) (entry Entry[T], found bool) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.objects.get(key)
	if e == nil {
		return Entry[T]{}, false
	}
	return Entry[T]{key, c, e.stored, e.positions}, true
}

// Len returns the number of objects.
func (c *Cache[T]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.objects.count()
}

// All yields the entries that [Cache.List] returns as objects: a consistent snapshot, in no order. A packed object is unpacked by
// [Entry.Object] only, so a loop over many objects holds a single unpacked object.
func (c *Cache[T]) All(namespace string, selector labels.Selector) iter.Seq[Entry[T]] {
	if selector != nil && selector.Empty() {
		selector = nil
	}
	return func(yield func(Entry[T]) bool) {
		for _, e := range c.entries(namespace) {
			if (selector == nil || selector.Matches(e.Labels())) && !yield(e) {
				return
			}
		}
	}
}

func (c *Cache[T]) entries(namespace string) []Entry[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	count := len(c.objects[namespace])
	if namespace == "" {
		count = c.objects.count()
	}
	all := make([]Entry[T], 0, count)
	for key, e := range c.objects.in(namespace) {
		all = append(all, Entry[T]{key, c, e.stored, e.positions})
	}
	return all
}
