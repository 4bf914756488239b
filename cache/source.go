package cache

// Source returns what the cache reads from.
func (c *Cache[T]) Source() Source[T] { return c.source }
