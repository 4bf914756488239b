package restmapper

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is how many near matches an error names.
const maxNear = 3

// suggestion is a resource that may have been meant, and how far it is from what was typed.
type suggestion struct {
	name     string
	distance int
}

// near returns the resources whose names differ least from what was asked for, in any case: plurals, singulars and kinds
// by letters, short names also by a plural's s (svcs, deploys). A typed group must be that of the resource, nearly, unless
// the name is right: then it is the group that is wrong.
func (c *catalog) near(q *query) []string {
	nearest := map[string]int{}
	var order []string // the server's
	for _, r := range q.readings() {
		typed := strings.ToLower(r.name)
		for mapping := range c.mappings() {
			distance, isNear := distanceTo(mapping, typed)
			if !isNear || distance > 0 && !r.isNearGroup(mapping.GVR.Group) {
				continue
			}
			name := mapping.GVR.GroupResource().String()
			best, seen := nearest[name]
			if !seen {
				order = append(order, name)
			}
			if !seen || distance < best {
				nearest[name] = distance
			}
		}
	}
	suggestions := make([]suggestion, 0, len(order))
	for _, name := range order {
		suggestions = append(suggestions, suggestion{name, nearest[name]})
	}
	slices.SortStableFunc(suggestions, func(a, b suggestion) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, s := range suggestions[:min(maxNear, len(suggestions))] {
		if best := suggestions[0].distance; best > 1 || s.distance == best { // a good match needs no others beside it
			names = append(names, s.name)
		}
	}
	return names
}

// isNearGroup reports whether the typed group is, nearly, a resource's.
func (r *reading) isNearGroup(group string) bool {
	if !r.grouped || r.inGroup(group) {
		return true
	}
	return r.group != "" && (strings.HasPrefix(group, r.group) || within(r.group, group, maxDistance(r.group)))
}

// distanceTo returns how far a name in lower case is from the nearest name of a resource.
func distanceTo(mapping *Mapping, typed string) (distance int, isNear bool) {
	most := maxDistance(typed)
	best := most + 1
	for _, name := range [...]string{mapping.GVR.Resource, singular(mapping), strings.ToLower(mapping.GVK.Kind)} {
		if within(typed, name, most) {
			best = min(best, editDistance(typed, name))
		}
		if len(typed) > 2 && strings.HasPrefix(name, typed) {
			best = min(best, most)
		}
	}
	for _, short := range mapping.ShortNames {
		short = strings.ToLower(short)
		switch {
		case typed == short:
			best = 0
		case typed == short+"s":
			best = min(best, 1)
		case len(short) > 3 && within(typed, short, 1): // shorter ones are alike too often
			best = min(best, 1)
		}
	}
	return best, best <= most
}

// maxDistance leaves at least one letter in common.
func maxDistance(typed string) int { return min(1+len(typed)/4, max(len(typed)-1, 0)) }

// within reports whether two words are at most so far apart. Words of very different length are not compared letter by
// letter.
func within(a, b string, most int) bool {
	apart := len(a) - len(b)
	return max(apart, -apart) <= most && b != "" && editDistance(a, b) <= most
}

// editDistance is how many letters must be added, dropped, changed or swapped with the next to make one word of the other.
func editDistance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			changed := row[j]
			if a[i] != b[j] {
				changed++
			}
			next[j+1] = min(changed, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
