package inventory

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// changedObject is an object of a kind that has changed, or was added or deleted.
type changedObject struct {
	kind *kind
	types.NamespacedName
}

// maxChangedObjects is the number of changed objects after which a consumer searches all objects.
const maxChangedObjects = 10_000

// consumer has the changed objects of a loop over Changes since its last search.
type consumer struct {
	ready chan struct{} // receives after a change

	mu      sync.Mutex
	changed map[changedObject]struct{} // nil if all objects may have changed
}

// next returns the changed objects, or nil if all objects may have changed. Later changes are new.
func (c *consumer) next() map[changedObject]struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.changed
	c.changed = map[changedObject]struct{}{}
	return changed
}

func (c *consumer) add(object changedObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.changed) == maxChangedObjects {
		c.changed = nil
	}
	if c.changed != nil {
		c.changed[object] = struct{}{}
	}
	c.wake()
}

// addAll notes that all objects may have changed. It does not wake the consumer.
func (c *consumer) addAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = nil
}

func (c *consumer) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// consumers are the loops over Changes. The zero value is ready.
type consumers struct {
	mu  sync.RWMutex
	all map[*consumer]struct{}
}

// add returns a new consumer for which all objects have changed.
func (c *consumers) add() *consumer {
	added := &consumer{ready: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[*consumer]struct{}{}
	}
	c.all[added] = struct{}{}
	return added
}

func (c *consumers) remove(removed *consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, removed)
}

// addChange notifies all consumers of a changed object.
func (c *consumers) addChange(object changedObject) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for each := range c.all {
		each.add(object)
	}
}

// addAll notifies all consumers that all objects may have changed.
func (c *consumers) addAll() {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for each := range c.all {
		each.addAll()
		each.wake()
	}
}
