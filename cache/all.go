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

	cache  *Cache[T]
	stored stored[T]
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

// Object returns the object, or nil after an [UnpackError].
func (e Entry[T]) Object() *T { return e.cache.load(e.stored) }

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
		all = append(all, Entry[T]{key, c, e.stored})
	}
	return all
}
