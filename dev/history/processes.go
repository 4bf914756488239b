package history

import (
	"cmp"
	"slices"
)

// sortedByBegin returns the indexes of the observations of a kind by all processes.
func (h *History) sortedByBegin(kind Kind) (indexes []int) {
	for i := range h.Observations {
		if h.Observations[i].Kind == kind {
			indexes = append(indexes, i)
		}
	}
	slices.SortStableFunc(indexes, func(a, b int) int { return cmp.Compare(h.Observations[a].Begin, h.Observations[b].Begin) })
	return indexes
}

// reconcilesExclusive checks that reconciles of a key do not overlap, in any process.
func reconcilesExclusive(h *History) (found []Violation) {
	latest := map[ID]int{} // the reconcile with the latest end
	for _, i := range h.sortedByBegin(Reconciled) {
		o := &h.Observations[i]
		previous, isKnown := latest[o.Key]
		if isKnown && h.Observations[previous].End > o.Begin {
			found = append(found, h.violation(i, "it began during: %s", h.describe(&h.Observations[previous])))
		}
		if !isKnown || h.Observations[previous].End < o.End {
			latest[o.Key] = i
		}
	}
	return found
}

// leadersExclusive checks that no leader sends a write after a later leader has sent one.
func leadersExclusive(h *History) (found []Violation) {
	newest := map[ID]int{} // by lease
	for _, i := range h.sortedByBegin(Led) {
		o := &h.Observations[i]
		previous, isKnown := newest[o.Key]
		if isKnown && !h.spansRestore(h.Observations[previous].Begin, o.Begin) && o.Revision < h.Observations[previous].Revision {
			found = append(found, h.violation(i, "the leader with token %d writes after: %s", o.Revision, h.describe(&h.Observations[previous])))
			continue
		}
		newest[o.Key] = i
	}
	return found
}
