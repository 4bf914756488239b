package cache

// Entries counts what the cache keeps of objects: the objects, where its indexes find them, and what waits for consumers.
func (c *Cache[T]) Entries() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	count := len(c.objects)
	for _, values := range c.indexes {
		count += len(values)
	}
	for each := range c.consumers {
		each.mu.Lock()
		count += len(each.pending)
		each.mu.Unlock()
	}
	return count
}
