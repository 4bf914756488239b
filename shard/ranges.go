package shard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Range is a range of hashes, with First and Last.
type Range struct{ First, Last uint64 }

// String returns the range in the form of a shard selector, with an exclusive end.
func (r Range) String() string {
	end := "0x10000000000000000"
	if r.Last < math.MaxUint64 {
		end = fmt.Sprintf("0x%016x", r.Last+1)
	}
	return fmt.Sprintf("'0x%016x', '%s'", r.First, end)
}

// Ranges is a set of hashes: ranges in ascending order, with a gap between each two. Nil is the empty set.
type Ranges []Range

// All returns the set of all hashes.
func All() Ranges { return Ranges{{0, math.MaxUint64}} }

// Union returns the hashes in any of the ranges. These may overlap and have any order. A range with First above Last is empty.
func Union(ranges ...Range) Ranges {
	var merged Ranges
	for _, r := range slices.SortedFunc(slices.Values(ranges), func(a, b Range) int { return cmp.Compare(a.First, b.First) }) {
		last := len(merged) - 1
		switch {
		case r.First > r.Last:
		case last >= 0 && (r.First <= merged[last].Last || r.First == merged[last].Last+1):
			merged[last].Last = max(merged[last].Last, r.Last)
		default:
			merged = append(merged, r)
		}
	}
	return merged
}

// Contains reports whether a hash is in the set.
func (s Ranges) Contains(hash uint64) bool {
	_, found := slices.BinarySearchFunc(s, hash, func(r Range, hash uint64) int {
		switch {
		case r.Last < hash:
			return -1
		case r.First > hash:
			return 1
		default:
			return 0
		}
	})
	return found
}

// Intersect returns the hashes in both sets.
func (s Ranges) Intersect(other Ranges) Ranges {
	var both Ranges
	for len(s) > 0 && len(other) > 0 {
		r := Range{max(s[0].First, other[0].First), min(s[0].Last, other[0].Last)}
		if r.First <= r.Last {
			both = append(both, r)
		}
		if s[0].Last < other[0].Last {
			s = s[1:]
		} else {
			other = other[1:]
		}
	}
	return both
}

// Subtract returns the hashes of s without those of a second set.
func (s Ranges) Subtract(other Ranges) Ranges { return s.Intersect(other.complement()) }

func (s Ranges) complement() Ranges {
	var gaps Ranges
	next := uint64(0)
	for _, r := range s {
		if next < r.First {
			gaps = append(gaps, Range{next, r.First - 1})
		}
		if r.Last == math.MaxUint64 {
			return gaps
		}
		next = r.Last + 1
	}
	return append(gaps, Range{next, math.MaxUint64})
}

// Share returns the fraction of all hashes in the set, between 0 and 1.
func (s Ranges) Share() (share float64) {
	for _, r := range s {
		share += (float64(r.Last-r.First) + 1) / (1 << 64)
	}
	return share
}
