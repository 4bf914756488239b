package cache

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// IndexByLabel returns an index function for the value of a label. Objects without the label have no value.
func IndexByLabel[T any, P Object[T]](name string) func(*T) []string {
	return func(obj *T) []string {
		if value, found := P(obj).GetLabels()[name]; found {
			return []string{value}
		}
		return nil
	}
}

// IndexByOwner is an index function. It returns the UIDs of obj's owners.
func IndexByOwner[T any, P interface {
	Object[T]
	GetOwnerReferences() []metav1.OwnerReference
}](obj *T) []string {
	var owners []string
	for _, owner := range P(obj).GetOwnerReferences() {
		owners = append(owners, string(owner.UID))
	}
	return owners
}

type index[T any] map[string]*bucket[T]

// bucket holds the entries of an index value. A slice is faster to copy than a map. Removal swaps with the last entry in constant
// time: each entry records its positions.
type bucket[T any] struct {
	index   index[T]
	value   string
	entries []*entry[T]
}

// position is entries[i] of a bucket, in a linked list per entry: an entry without index values needs a single nil pointer.
type position[T any] struct {
	bucket *bucket[T]
	i      int
	next   *position[T]
}

type indexValue struct{ index, value string }

func (c *Cache[T]) indexValues(key types.NamespacedName, obj *T) []indexValue {
	var all []indexValue
	for name, valuesOf := range c.opts.Indexes {
		c.callback = callback{"the index", name, key}
		for _, value := range valuesOf(obj) {
			all = append(all, indexValue{name, value})
		}
	}
	c.callback = callback{}
	return all
}

// isIndexed reports whether the index values of e are exactly values.
func (c *Cache[T]) isIndexed(e *entry[T], values []indexValue) bool {
	count := 0
	for p := e.positions; p != nil; p = p.next {
		if !slices.ContainsFunc(values, func(v indexValue) bool { return c.indexes[v.index][v.value] == p.bucket }) {
			return false
		}
		count++
	}
	return count == len(values)
}

func (e *entry[T]) removeFromIndexes() {
	for p := e.positions; p != nil; p = p.next {
		p.bucket.remove(p.i)
	}
	e.positions = nil
}

func (x index[T]) add(value string, e *entry[T]) {
	b := x[value]
	if b == nil {
		b = &bucket[T]{index: x, value: value}
		x[value] = b
	}
	if e.positionIn(b) == nil {
		e.positions = &position[T]{b, len(b.entries), e.positions}
		b.entries = append(b.entries, e)
	}
}

// positionIn returns the position of e in b, or nil.
func (e *entry[T]) positionIn(b *bucket[T]) *position[T] {
	p := e.positions
	for p != nil && p.bucket != b {
		p = p.next
	}
	return p
}

func (b *bucket[T]) remove(i int) {
	end := len(b.entries) - 1
	if last := b.entries[end]; i < end {
		b.entries[i] = last
		last.positionIn(b).i = i
	}
	b.entries[end] = nil
	b.entries = b.entries[:end]
	switch {
	case end == 0:
		delete(b.index, b.value)
	case cap(b.entries) > 64 && end < cap(b.entries)/4: // frees memory
		b.entries = append(make([]*entry[T], 0, 2*end), b.entries...)
	}
}

func (b *bucket[T]) objects() []stored[T] {
	if b == nil {
		return nil
	}
	all := make([]stored[T], len(b.entries))
	for i, e := range b.entries {
		all[i] = e.stored
	}
	return all
}
