package simulate

import (
	"maps"
	"slices"
)

// maxShrinkRuns limits the runs spent on shrinking a failure.
const maxShrinkRuns = 400

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// shrink removes choices from a failed run while the failure has the same class: first halves, then quarters, down to single
// choices. It returns the last failed run and its choices.
func (f *finder) shrink(res *result, c *choices) (best *result, bestChoices *choices) {
	found := f.runs
	best = res
	bestChoices = c
	try := func(keys []string) bool {
		fixed := map[string]int{}
		for _, key := range keys {
			fixed[key] = res.made[key]
		}
		candidate := &choices{seed: c.seed, fixed: fixed, after: c.after}
		got := f.run(candidate)
		if got.failure == nil || got.failure.class != res.failure.class {
			return false
		}
		best = got
		bestChoices = candidate
		return true
	}
	keys := sortedKeys(res.made)
	if try(keys) {
		for size := (len(keys) + 1) / 2; size > 0 && f.runs-found < maxShrinkRuns; {
			removed := false
			for from := 0; from < len(keys) && f.runs-found < maxShrinkRuns; {
				rest := slices.Concat(keys[:from], keys[min(from+size, len(keys)):])
				if try(rest) {
					keys = rest
					removed = true
				} else {
					from += size
				}
			}
			if !removed || size > len(keys) {
				size /= 2
			}
		}
	}
	return best, bestChoices
}
