package restmapper

import (
	"cmp"
	"slices"
	"strings"
)

// mostNear is how many near matches an error names.
const mostNear = 3

// near finds the names that differ least from what was asked for, in any case.
func (c *catalog) near(name string) []string {
	type candidate struct {
		name string
		far  int
	}
	lower := strings.ToLower(name)
	most := 1 + len(lower)/4
	nearest := map[string]int{}
	for served, linked := range c.chains {
		far := most + 1
		// Words of very different length need not be compared letter by letter.
		if apart := len(lower) - len(served); max(apart, -apart) <= most {
			far = distance(lower, strings.ToLower(served))
		}
		if strings.HasPrefix(served, lower) && len(lower) > 2 {
			far = min(far, most)
		}
		if far > most {
			continue
		}
		for at := linked.first; at != 0; at = c.entries[at].next {
			if c.entries[at].rank != byName {
				continue
			}
			resource := c.entries[at].mapping.GVR.GroupResource().String()
			if best, seen := nearest[resource]; !seen || far < best {
				nearest[resource] = far
			}
		}
	}
	var candidates []candidate
	for resource, far := range nearest {
		candidates = append(candidates, candidate{resource, far})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, candidate := range candidates[:min(mostNear, len(candidates))] {
		names = append(names, candidate.name)
	}
	return names
}

// distance is how many letters must be added, dropped or changed to make one word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
