package cache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
)

// Get gives one object; namespace is "" for what is cluster-scoped.
func (c *Cache[T]) Get(namespace, name string) (obj *T, found bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, found := c.objects[Key{namespace, name}]
	return objectOf(e), found
}

// All gives every object as of one moment, in no order.
func (c *Cache[T]) All() []*T { return c.List("", nil) }

// List gives the objects of a namespace, "" for all, that a selector matches, nil for all, as of one moment and in no
// order. labels.Parse makes a selector of text.
func (c *Cache[T]) List(namespace string, selector labels.Selector) []*T {
	c.mu.RLock()
	var all []*T
	if namespace == "" {
		all = objectsOf(c.objects)
	} else {
		all = c.indexes[byNamespace][namespace].objects()
	}
	c.mu.RUnlock()
	if selector == nil || selector.Empty() {
		return all
	}
	matching := all[:0]
	for _, obj := range all {
		if selector.Matches(labels.Set(c.meta(obj).labels())) {
			matching = append(matching, obj)
		}
	}
	return matching
}

// By gives the objects that an index of Options.Indexes finds under a value, as of one moment and in no order. An index
// that there is not is an error.
func (c *Cache[T]) By(name, value string) ([]*T, error) {
	if _, known := c.opts.Indexes[name]; !known {
		return nil, fmt.Errorf("find objects in the cache of %s: there is no index %q: name it in Options.Indexes", c.what(), name)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.indexes[name][value].objects(), nil
}

func objectsOf[T any](entries map[Key]*entry[T]) []*T {
	all := make([]*T, 0, len(entries))
	for _, e := range entries {
		all = append(all, e.object)
	}
	return all
}
