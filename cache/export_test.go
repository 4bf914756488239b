package cache

import "k8s.io/apimachinery/pkg/types"

// PatchStore replaces a stored object, or removes it if obj is nil, as a defect would.
func (c *Cache[T]) PatchStore(key types.NamespacedName, obj *T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if obj == nil {
		c.objects.remove(key)
		return
	}
	c.objects.set(key, &entry[T]{stored: stored[T]{object: obj}})
}

// Entries returns the number of objects, index values and pending changes of a cache, and of objects that Transform has left out.
func (c *Cache[T]) Entries() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	count := c.objects.count() + len(c.audits.leftOut)
	for _, values := range c.indexes {
		count += len(values.buckets)
	}
	for consumer := range c.consumers {
		consumer.mu.Lock()
		count += len(consumer.pending)
		consumer.mu.Unlock()
	}
	return count
}
