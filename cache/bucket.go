package cache

import "slices"

// index finds entries by a value.
type index[T any] map[string]*bucket[T]

// byNamespace is the index that every cache has; no caller can name it.
const byNamespace = "\x00namespace"

// bucket is the entries of one value, in a slice, which is copied faster than a map.
type bucket[T any] struct {
	index   index[T]
	value   string
	entries []*entry[T]
}

// place is where an entry is in a bucket.
type place[T any] struct {
	in *bucket[T]
	at int
}

type indexValue struct{ index, value string }

// valuesOf asks the caller's indexes where they find an object.
func (c *Cache[T]) valuesOf(key Key, obj *T) []indexValue {
	var all []indexValue
	for name, valuesOf := range c.opts.Indexes {
		c.callee = callee{"the index", name, key}
		for _, value := range valuesOf(obj) {
			all = append(all, indexValue{name, value})
		}
	}
	c.callee = callee{}
	return all
}

// index has an entry found by its namespace and by these values.
func (c *Cache[T]) index(e *entry[T], key Key, values []indexValue) {
	e.places = make([]place[T], 0, 1+len(values))
	c.indexes[byNamespace].add(key.Namespace, e)
	for _, v := range values {
		c.indexes[v.index].add(v.value, e)
	}
}

// finds says whether an entry, whose namespace does not change, is found by exactly these values already.
func (c *Cache[T]) finds(e *entry[T], values []indexValue) bool {
	if len(e.places) != 1+len(values) {
		return false
	}
	for _, p := range e.places[1:] {
		if !slices.ContainsFunc(values, func(v indexValue) bool { return c.indexes[v.index][v.value] == p.in }) {
			return false
		}
	}
	return true
}

// add has an entry found by a value, once.
func (i index[T]) add(value string, e *entry[T]) {
	in := i[value]
	if in == nil {
		in = &bucket[T]{index: i, value: value}
		i[value] = in
	}
	if e.placeIn(in) == nil {
		e.places = append(e.places, place[T]{in, len(in.entries)})
		in.entries = append(in.entries, e)
	}
}

// placeIn is the entry's place in a bucket; nil if it is not there.
func (e *entry[T]) placeIn(in *bucket[T]) *place[T] {
	for i := range e.places {
		if e.places[i].in == in {
			return &e.places[i]
		}
	}
	return nil
}

// unindex has an entry found no more.
func (e *entry[T]) unindex() {
	for _, p := range e.places {
		p.in.remove(p.at)
	}
	e.places = nil
}

// remove puts the last entry in the place of one.
func (b *bucket[T]) remove(at int) {
	end := len(b.entries) - 1
	if last := b.entries[end]; at < end {
		b.entries[at] = last
		last.placeIn(b).at = at
	}
	b.entries[end] = nil
	b.entries = b.entries[:end]
	switch {
	case end == 0:
		delete(b.index, b.value)
	case cap(b.entries) > 64 && end < cap(b.entries)/4: // what many have left is given back
		b.entries = append(make([]*entry[T], 0, 2*end), b.entries...)
	}
}

// objects gives the objects of a bucket, if there is one.
func (b *bucket[T]) objects() []*T {
	if b == nil {
		return []*T{}
	}
	all := make([]*T, len(b.entries))
	for i, e := range b.entries {
		all[i] = e.object
	}
	return all
}
