package cache

// entry is one object in the cache. A new state of the object is a new entry.
type entry[T any] struct {
	object *T
	places []place[T] // where indexes find it
}

// put stores an object's new state and tells the consumers.
func (c *Cache[T]) put(key Key, obj *T) {
	values := c.valuesOf(key, obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	if in := c.indexes[byNamespace][key.Namespace]; in != nil {
		key.Namespace = in.value // one text for all
	}
	was, now := c.objects[key], &entry[T]{object: obj}
	was.unindex()
	c.objects[key] = now
	now.places = make([]place[T], 0, 1+len(values))
	c.indexes[byNamespace].add(key.Namespace, now)
	for _, v := range values {
		c.indexes[v.index].add(v.value, now)
	}
	for each := range c.consumers {
		each.note(key, objectOf(was), obj)
	}
}

// remove forgets an object and tells the consumers its last state: what the server told, or with nil what the cache had.
func (c *Cache[T]) remove(key Key, last *T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.objects[key]
	if was == nil {
		return
	}
	if last == nil {
		last = was.object
	}
	was.unindex()
	delete(c.objects, key)
	for each := range c.consumers {
		each.noteGone(key, was.object, last)
	}
}

func objectOf[T any](e *entry[T]) *T {
	if e == nil {
		return nil
	}
	return e.object
}
