// Package editdistance compares mistyped names with names, for suggestions.
package editdistance

import (
	"cmp"
	"slices"
)

// Limit returns the largest distance at which a name is similar to the typed name. It leaves at least one letter in common.
func Limit(typed string) int { return min(1+len(typed)/4, max(len(typed)-1, 0)) }

// Bounded returns min(edit distance, limit+1). It does not compare very different lengths.
func Bounded(a, b string, limit int) int {
	if difference := len(a) - len(b); max(difference, -difference) > limit || b == "" {
		return limit + 1
	}
	return min(distance(a, b), limit+1)
}

// Similar returns up to limit names similar to the typed name, the most similar first.
func Similar(typed string, names []string, limit int) []string {
	largest := Limit(typed)
	distances := map[string]int{}
	var similar []string
	for _, name := range names {
		if d := Bounded(typed, name, largest); d <= largest {
			distances[name] = d
			similar = append(similar, name)
		}
	}
	slices.SortFunc(similar, func(a, b string) int { return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b)) })
	return similar[:min(limit, len(similar))]
}

// distance returns the Damerau-Levenshtein distance: letters inserted, deleted, replaced, or swapped with the next.
func distance(a, b string) int {
	before := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	next := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			replaced := row[j]
			if a[i] != b[j] {
				replaced++
			}
			next[j+1] = min(replaced, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
