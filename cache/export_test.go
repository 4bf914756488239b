package cache

// Entries returns the number of objects, index values and pending changes of a cache.
func (c *Cache[T]) Entries() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	count := c.objects.count()
	for _, values := range c.indexes {
		count += len(values)
	}
	for consumer := range c.consumers {
		consumer.mu.Lock()
		count += len(consumer.pending)
		consumer.mu.Unlock()
	}
	return count
}
