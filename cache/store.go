package cache

// entry is one object in the cache, as it is now.
type entry[T any] struct {
	object *T
	places []place[T] // where indexes find it, by its namespace first
}

// put stores an object's new state and tells the consumers.
func (c *Cache[T]) put(key Key, obj *T) {
	c.mutations.record(key, obj)
	values := c.valuesOf(key, obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	if in := c.indexes[byNamespace][key.Namespace]; in != nil {
		key.Namespace = in.value // one text for all
	}
	e := c.objects[key]
	if e == nil {
		e = &entry[T]{}
		c.objects[key] = e
	}
	was := e.object
	e.object = obj
	if !c.finds(e, values) {
		e.unindex()
		c.index(e, key, values)
	}
	for each := range c.consumers {
		each.note(key, was, obj)
	}
}

// remove deletes an object and notifies the consumers of its last state: last or, where that is nil, what the cache had.
// inferred reports that the API did not report the deletion.
func (c *Cache[T]) remove(key Key, last *T, inferred bool) {
	c.mutations.forget(key)
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
		each.noteGone(key, was.object, last, inferred)
	}
}

func objectOf[T any](e *entry[T]) *T {
	if e == nil {
		return nil
	}
	return e.object
}
