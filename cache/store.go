package cache

// entry is one object in the cache. An entry does not change: a new state of the object is a new entry.
type entry[T any] struct {
	key    Key
	object *T
	found  map[string][]string // by index
}

// index finds entries by a value.
type index[T any] map[string]map[Key]*entry[T]

// byNamespace is the index that every cache has; no caller can name it.
const byNamespace = "\x00namespace"

// put stores an object's new state and tells the consumers.
func (c *Cache[T]) put(key Key, obj *T) {
	now := &entry[T]{key: key, object: obj}
	if len(c.opts.Indexes) > 0 {
		now.found = make(map[string][]string, len(c.opts.Indexes))
		for name, values := range c.opts.Indexes {
			now.found[name] = values(obj)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.objects[now.key]
	c.unindex(was)
	c.objects[now.key] = now
	c.index(now)
	for each := range c.consumers {
		each.note(now.key, objectOf(was), obj)
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
	c.unindex(was)
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

func (c *Cache[T]) index(e *entry[T]) {
	c.indexes[byNamespace].add(e.key.Namespace, e)
	for name, values := range e.found {
		for _, value := range values {
			c.indexes[name].add(value, e)
		}
	}
}

func (c *Cache[T]) unindex(e *entry[T]) {
	if e == nil {
		return
	}
	c.indexes[byNamespace].remove(e.key.Namespace, e)
	for name, values := range e.found {
		for _, value := range values {
			c.indexes[name].remove(value, e)
		}
	}
}

func (i index[T]) add(value string, e *entry[T]) {
	if i[value] == nil {
		i[value] = map[Key]*entry[T]{}
	}
	i[value][e.key] = e
}

func (i index[T]) remove(value string, e *entry[T]) {
	delete(i[value], e.key)
	if len(i[value]) == 0 {
		delete(i, value)
	}
}
