package sharding

import (
	"math"
	"slices"

	"github.com/anykind/anykind/shard"
)

// weights distribute a weight of 1 over the hashes: evenly, or over the listed hashes.
type weights struct {
	hashes []uint64 // in ascending order; nil: all hashes weigh the same
}

// newWeights returns the weights of the namespaces that exist.
func newWeights(namespaces []string) weights {
	var w weights
	for _, namespace := range namespaces {
		w.hashes = append(w.hashes, shard.Hash(namespace))
	}
	slices.Sort(w.hashes)
	w.hashes = slices.Compact(w.hashes)
	return w
}

// of returns the weight of a range.
func (w weights) of(r shard.Range) float64 {
	if len(w.hashes) == 0 {
		return shard.Ranges{r}.Share()
	}
	begin, end := w.within(r)
	return float64(end-begin) / float64(len(w.hashes))
}

// within returns the indexes of the listed hashes in a range, with an exclusive end.
func (w weights) within(r shard.Range) (begin, end int) {
	begin, _ = slices.BinarySearch(w.hashes, r.First)
	end, found := slices.BinarySearch(w.hashes, r.Last)
	if found {
		end++
	}
	return begin, end
}

// unit is the smallest weight that can be moved.
func (w weights) unit() float64 {
	if len(w.hashes) == 0 {
		return 1.0 / (1 << 32)
	}
	return 1 / float64(len(w.hashes))
}

// tail returns the part at the end of a range with about the weight, at most. The part is the whole range, or shorter by at least a
// hash. ok is false if the smallest part weighs more.
func (w weights) tail(r shard.Range, weight float64) (part shard.Range, ok bool) {
	if len(w.hashes) == 0 {
		size := weight * (1 << 64)
		switch {
		case size < 1:
			return part, false
		case size > float64(r.Last-r.First):
			return r, true
		}
		return shard.Range{First: max(r.First, r.Last-uint64(size)+1), Last: r.Last}, true
	}
	begin, end := w.within(r)
	n := int(math.Floor(weight*float64(len(w.hashes)) + 1e-9))
	switch {
	case n == 0:
		return part, false
	case n >= end-begin:
		return r, true
	}
	before := w.hashes[end-n-1]
	first := w.hashes[end-n]
	return shard.Range{First: before + (first-before+1)/2, Last: r.Last}, true
}

// head returns the part at the beginning of a range, like tail.
func (w weights) head(r shard.Range, weight float64) (part shard.Range, ok bool) {
	if len(w.hashes) == 0 { // mirrored
		part, ok = w.tail(shard.Range{First: ^r.Last, Last: ^r.First}, weight)
		return shard.Range{First: ^part.Last, Last: ^part.First}, ok
	}
	begin, end := w.within(r)
	n := int(math.Floor(weight*float64(len(w.hashes)) + 1e-9))
	switch {
	case n == 0:
		return part, false
	case n >= end-begin:
		return r, true
	}
	last := w.hashes[begin+n-1]
	after := w.hashes[begin+n]
	return shard.Range{First: r.First, Last: last + (after-last-1)/2}, true
}
