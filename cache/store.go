package cache

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// objects maps namespace ("" for cluster-scoped objects) and name to entries. A namespace without objects has no map.
type objects[T any] map[string]map[string]*entry[T]

type entry[T any] struct {
	stored[T]
	positions *position[T] // linked list of index positions
}

func (o objects[T]) get(key types.NamespacedName) *entry[T] { return o[key.Namespace][key.Name] }

// set stores an entry. It keeps key.Name, a string of the object's current version, and clones key.Namespace.
func (o objects[T]) set(key types.NamespacedName, e *entry[T]) {
	inNamespace := o[key.Namespace]
	if inNamespace == nil {
		inNamespace = map[string]*entry[T]{}
		o[strings.Clone(key.Namespace)] = inNamespace
	}
	inNamespace[key.Name] = e
}

func (o objects[T]) remove(key types.NamespacedName) {
	inNamespace := o[key.Namespace]
	if delete(inNamespace, key.Name); len(inNamespace) == 0 {
		delete(o, key.Namespace)
	}
}

func (o objects[T]) all() iter.Seq2[types.NamespacedName, *entry[T]] {
	return func(yield func(types.NamespacedName, *entry[T]) bool) {
		for namespace, inNamespace := range o {
			for name, e := range inNamespace {
				if !yield(types.NamespacedName{Namespace: namespace, Name: name}, e) {
					return
				}
			}
		}
	}
}

// in returns the entries of a namespace, or all entries for "".
func (o objects[T]) in(namespace string) iter.Seq2[types.NamespacedName, *entry[T]] {
	if namespace == "" {
		return o.all()
	}
	return objects[T]{namespace: o[namespace]}.all()
}

func (o objects[T]) count() (n int) {
	for _, inNamespace := range o {
		n += len(inNamespace)
	}
	return n
}

// Get returns an object. namespace is "" for a cluster-scoped object.
func (c *Cache[T]) Get(namespace, name string) (obj *T, found bool) {
	obj = c.load(c.lookUp(types.NamespacedName{Namespace: namespace, Name: name}))
	return obj, obj != nil
}

// List returns the objects in a namespace ("" for all namespaces) that match selector (nil for all objects), in no order. The
// result is a consistent snapshot. labels.Parse parses selectors.
func (c *Cache[T]) List(namespace string, selector labels.Selector) []*T {
	if selector != nil && selector.Empty() {
		selector = nil
	}
	return c.loadAll(c.listNamespace(namespace), selector)
}

func (c *Cache[T]) lookUp(key types.NamespacedName) stored[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.objects.get(key); e != nil {
		return e.stored
	}
	return stored[T]{}
}

func (c *Cache[T]) listNamespace(namespace string) []stored[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if namespace != "" {
		return appendStored(nil, c.objects[namespace])
	}
	all := make([]stored[T], 0, c.objects.count())
	for _, inNamespace := range c.objects {
		all = appendStored(all, inNamespace)
	}
	return all
}

func appendStored[T any](all []stored[T], entries map[string]*entry[T]) []stored[T] {
	all = slices.Grow(all, len(entries))
	for _, e := range entries {
		all = append(all, e.stored)
	}
	return all
}

// ByIndex returns the objects with a value in an index of Options.Indexes, in no order. The result is a consistent snapshot. An
// unknown index is an error.
func (c *Cache[T]) ByIndex(name, value string) ([]*T, error) {
	x := c.index(name)
	if x == nil {
		return nil, fmt.Errorf("cache %s: unknown index %q (add it to Options.Indexes)", c, name)
	}
	return c.loadAll(c.listIndexed(x, value), nil), nil
}

func (c *Cache[T]) listIndexed(x *index[T], value string) []stored[T] {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return x.buckets[value].objects()
}

// put stores obj and queues the change for the consumers.
func (c *Cache[T]) put(key types.NamespacedName, obj *T) {
	c.mutations.put(key, obj)
	values := c.indexValues(key, obj)
	current := c.store(obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.objects.get(key)
	if e == nil {
		e = &entry[T]{}
	}
	c.objects.set(key, e)
	old := e.stored
	e.stored = current
	if !e.isIndexed(values) {
		c.removeFromIndexes(e)
		c.addToIndexes(key, e, values)
	}
	for consumer := range c.consumers {
		consumer.queue(key, old, update[T]{object: current})
	}
	c.waiters.evaluateKey(key)
}

// remove deletes an object and queues u for the consumers. Without an object in u, its last state is the stored object.
func (c *Cache[T]) remove(key types.NamespacedName, u update[T]) {
	c.mutations.remove(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.objects.get(key)
	if e == nil {
		return
	}
	if !u.object.exists() {
		u.object = e.stored
	}
	c.removeFromIndexes(e)
	c.objects.remove(key)
	for consumer := range c.consumers {
		consumer.queue(key, e.stored, u)
	}
	c.waiters.evaluateKey(key)
}
