package simulate

import (
	"maps"
	"slices"
)

// maxShrinkRuns bounds the runs that look for a shorter failure.
const maxShrinkRuns = 400

func sortedKeys(made map[string]int) []string { return slices.Sorted(maps.Keys(made)) }

// shrink leaves out choices of a failed run as long as it fails in the same way: halves of them, then quarters, until no single one can
// be left out. It returns the last run that failed and its choices.
func (f *finder) shrink(res *result, c *choices) (best *result, bestChoices *choices) {
	found := f.runs
	best, bestChoices = res, c
	try := func(keys []string) bool {
		fixed := map[string]int{}
		for _, key := range keys {
			fixed[key] = res.made[key]
		}
		candidate := &choices{seed: c.seed, fixed: fixed}
		got := f.run(candidate)
		if got.failure == nil || got.failure.class != res.failure.class {
			return false
		}
		best, bestChoices = got, candidate
		return true
	}
	keys := sortedKeys(res.made)
	if try(keys) {
		for size := (len(keys) + 1) / 2; size > 0 && f.runs-found < maxShrinkRuns; {
			removed := false
			for from := 0; from < len(keys) && f.runs-found < maxShrinkRuns; {
				rest := slices.Concat(keys[:from], keys[min(from+size, len(keys)):])
				if try(rest) {
					keys, removed = rest, true
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
