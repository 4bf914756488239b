package cache

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// SharedIndex is an index over the objects of several caches, such as the dependents of an owner among all kinds. Its costs are those
// of a single cache's index: a read does not ask each cache. It is safe for concurrent use.
type SharedIndex[T any] struct {
	index[T]

	mu sync.RWMutex // guards buckets and their members; locked while the mu of a cache is held
}

// NewSharedIndex returns an index for Options.SharedIndexes. valuesOf is as in Options.Indexes.
func NewSharedIndex[T any](name string, valuesOf func(*T) []string) *SharedIndex[T] {
	x := &SharedIndex[T]{index: *newIndex(name, valuesOf)}
	x.shared = x
	return x
}

// member is an entry of a bucket of a [SharedIndex].
type member[T any] struct {
	cache    *Cache[T]
	key      string // NAMESPACE/NAME, of its own: parts of an object would keep the object
	position *position[T]
}

// Entries yields the entries with a value in all caches, in no order. The caches do not stand still meanwhile: an object that changes
// may be missing, and the states of two objects may be of different times.
func (x *SharedIndex[T]) Entries(value string) iter.Seq[Entry[T]] {
	return func(yield func(Entry[T]) bool) {
		for _, m := range x.members(value) {
			namespace, name, _ := strings.Cut(m.key, "/")
			if e, found := m.cache.Entry(namespace, name); found && e.hasIndexValue(x.name, value) && !yield(e) {
				return
			}
		}
	}
}

func (x *SharedIndex[T]) members(value string) []member[T] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if b := x.buckets[value]; b != nil {
		return slices.Clone(b.members)
	}
	return nil
}

// add adds an entry of c to the bucket of a value. c.mu must be held.
func (x *SharedIndex[T]) add(value string, c *Cache[T], key types.NamespacedName, e *entry[T]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	b := x.bucket(value)
	if e.positionIn(b) == nil {
		e.positions = &position[T]{b, len(b.members), e.positions}
		b.members = append(b.members, member[T]{c, key.Namespace + "/" + key.Name, e.positions})
	}
}

// remove removes an entry from a bucket. The mu of the entry's cache must be held.
func (x *SharedIndex[T]) remove(p *position[T]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	b := p.bucket
	end := len(b.members) - 1
	b.members[p.i] = b.members[end]
	b.members[p.i].position.i = p.i
	b.members = shortened(b.members)
	if end == 0 {
		delete(x.buckets, b.value)
	}
}
