// Package shard selects objects by the hash of a metadata field, as API servers with the feature gate ShardedListAndWatch do
// (https://kep.k8s.io/5866): N replicas of a program list and watch a part of the objects each.
package shard

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Field is the metadata field to be hashed.
type Field string

const (
	// UID distributes objects evenly. An object and its owned objects are in different shards.
	UID Field = "metadata.uid"
	// Namespace keeps the objects of a namespace together. All cluster-scoped objects are in one shard.
	Namespace Field = "metadata.namespace"
)

// Hash returns the hash of a field's value: FNV-1a of 64 bits.
func Hash(value string) uint64 {
	hash := uint64(14695981039346656037)
	for i := range len(value) {
		hash = (hash ^ uint64(value[i])) * 1099511628211
	}
	return hash
}

// Selector selects the objects whose field has a hash within ranges. It is immutable. The zero value selects all objects.
type Selector struct {
	field  Field // "" for all objects
	hashes Ranges
}

// New returns the selector of the objects with a hash in any of the ranges, see [Union]. Without a range it selects no object.
func New(field Field, ranges ...Range) Selector { return Selector{field, Union(ranges...)} }

// Split returns n selectors of about equal ranges. Each object is selected once.
func Split(field Field, n int) []Selector {
	selectors := make([]Selector, 0, n)
	rest := All()[0]
	for i := n; i > 0; i-- {
		r := rest
		if i > 1 {
			r.Last = r.First + (rest.Last-rest.First)/uint64(i)
			rest.First = r.Last + 1
		}
		selectors = append(selectors, New(field, r))
	}
	return selectors
}

// Field returns the field, or "" for the zero value.
func (s Selector) Field() Field { return s.field }

// Ranges returns the selected hashes.
func (s Selector) Ranges() Ranges {
	if s.field == "" {
		return All()
	}
	return slices.Clone(s.hashes)
}

// IsEverything reports whether s selects all objects.
func (s Selector) IsEverything() bool {
	return s.field == "" || len(s.hashes) == 1 && s.hashes[0] == All()[0]
}

// IsNothing reports whether s selects no object.
func (s Selector) IsNothing() bool { return s.field != "" && len(s.hashes) == 0 }

// Intersect returns the selector of the objects selected by both. Both selectors must have the same field.
func (s Selector) Intersect(other Selector) Selector {
	return Selector{cmp.Or(s.field, other.field), s.Ranges().Intersect(other.Ranges())}
}

// Union returns the selector of all objects of both. Both selectors must have the same field.
func (s Selector) Union(other Selector) Selector {
	return Selector{cmp.Or(s.field, other.field), Union(append(s.Ranges(), other.Ranges()...)...)}
}

// Subtract returns the selector of the objects selected by s alone. Both selectors must have the same field. The difference of two zero
// values has the field UID.
func (s Selector) Subtract(other Selector) Selector {
	return Selector{cmp.Or(s.field, other.field, UID), s.Ranges().Subtract(other.Ranges())}
}

// Equal reports whether both selectors select the same objects by the same field.
func (s Selector) Equal(other Selector) bool {
	return s.field == other.field && slices.Equal(s.hashes, other.hashes)
}

// Matches reports whether s selects the object with a namespace, "" if it is cluster-scoped, and a UID.
func (s Selector) Matches(namespace string, uid types.UID) bool {
	switch {
	case s.IsEverything():
		return true
	case s.field == Namespace:
		return s.hashes.Contains(Hash(namespace))
	default:
		return s.hashes.Contains(Hash(string(uid)))
	}
}

// String returns the selector in the form of the query parameter shardSelector: "shardRange(object.metadata.uid,
// '0x0000000000000000', '0x8000000000000000')", with ranges joined by " || ". It is "" if s selects everything or nothing: servers
// have no form for these.
func (s Selector) String() string {
	if s.IsEverything() {
		return ""
	}
	var text strings.Builder
	for i, r := range s.hashes {
		if i > 0 {
			text.WriteString(" || ")
		}
		text.WriteString("shardRange(object." + string(s.field) + ", " + r.String() + ")")
	}
	return text.String()
}
