// Package editdistance compares mistyped names with names, for suggestions.
package editdistance

import (
	"cmp"
	"slices"
)

// Limit returns the largest distance at which a name is similar to the typed name. It leaves at least a letter in common.
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
	var rows [3][]int // the latest rows of the table, by their number modulo 3
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := range len(a) {
		before := rows[(i+2)%3]
		row := rows[i%3]
		next := rows[(i+1)%3]
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
	}
	return rows[len(a)%3][len(b)]
}
