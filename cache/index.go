package cache

import (
	"slices"
	"strings"

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

// index has the buckets of an index by value.
type index[T any] struct {
	name     string
	valuesOf func(*T) []string
	buckets  map[string]*bucket[T]
	shared   *SharedIndex[T] // the index as a shared index, or nil
}

func newIndex[T any](name string, valuesOf func(*T) []string) *index[T] {
	return &index[T]{name: name, valuesOf: valuesOf, buckets: map[string]*bucket[T]{}}
}

// index returns an index of Options.Indexes, or nil.
func (c *Cache[T]) index(name string) *index[T] {
	for _, x := range c.indexes {
		if x.name == name && x.shared == nil {
			return x
		}
	}
	return nil
}

// bucket returns the bucket of a value. It keeps a copy of the value, which may be a part of an object.
func (x *index[T]) bucket(value string) *bucket[T] {
	b := x.buckets[value]
	if b == nil {
		b = &bucket[T]{index: x, value: strings.Clone(value)}
		x.buckets[b.value] = b
	}
	return b
}

// bucket holds the entries of an index value. A slice is faster to copy than a map. Removal swaps with the last entry in constant
// time: each entry records its positions. A [SharedIndex] has members instead.
type bucket[T any] struct {
	index   *index[T]
	value   string
	entries []*entry[T]
	members []member[T]
}

// position is entries[i] or members[i] of a bucket, in a linked list per entry: an entry without index values needs a single nil
// pointer. bucket and next never change: a reader may keep a list and read its values.
type position[T any] struct {
	bucket *bucket[T]
	i      int
	next   *position[T]
}

type indexValue[T any] struct {
	index *index[T]
	value string
}

func (c *Cache[T]) indexValues(key types.NamespacedName, obj *T) []indexValue[T] {
	var all []indexValue[T]
	for _, x := range c.indexes {
		c.callback = callback{"the index", x.name, key}
		for _, value := range x.valuesOf(obj) {
			all = append(all, indexValue[T]{x, value})
		}
	}
	c.callback = callback{}
	return all
}

// isIndexed reports whether the index values of e are exactly values.
func (e *entry[T]) isIndexed(values []indexValue[T]) bool {
	count := 0
	for p := e.positions; p != nil; p = p.next {
		if !slices.Contains(values, indexValue[T]{p.bucket.index, p.bucket.value}) {
			return false
		}
		count++
	}
	return count == len(values)
}

// addToIndexes adds an entry without positions. c.mu must be held.
func (c *Cache[T]) addToIndexes(key types.NamespacedName, e *entry[T], values []indexValue[T]) {
	for _, v := range values {
		if v.index.shared != nil {
			v.index.shared.add(v.value, c, key, e)
		} else {
			v.index.bucket(v.value).add(e)
		}
	}
}

// removeFromIndexes removes an entry. c.mu must be held.
func (c *Cache[T]) removeFromIndexes(e *entry[T]) {
	for p := e.positions; p != nil; p = p.next {
		if shared := p.bucket.index.shared; shared != nil {
			shared.remove(p)
		} else {
			p.bucket.remove(p.i)
		}
	}
	e.positions = nil
}

func (b *bucket[T]) add(e *entry[T]) {
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
	b.entries = shortened(b.entries)
	if end == 0 {
		delete(b.index.buckets, b.value)
	}
}

// shortened returns a slice without its last element. A slice with much unused memory is copied.
func shortened[E any](all []E) []E {
	end := len(all) - 1
	clear(all[end:])
	if cap(all) > 64 && end < cap(all)/4 {
		return append(make([]E, 0, 2*end), all[:end]...)
	}
	return all[:end]
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
