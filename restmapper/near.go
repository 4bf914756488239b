package restmapper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mostNear is how many near matches an error names.
const mostNear = 3

// noMatch says all that is known about a name that was not found.
func (c *catalog) noMatch(name string, asked []reading) *NoMatchError {
	err := &NoMatchError{Name: name}
	for _, r := range asked {
		if r.version != "" {
			for _, other := range (reading{name: r.name, group: r.group, grouped: true}).among(c.named) {
				err.Versions = append(err.Versions, other.GVR.Version)
			}
		}
	}
	if len(err.Versions) == 0 {
		err.Near = c.near(asked[0].name)
	}
	err.Unreadable = c.unreadable(asked)
	return err
}

// unreadable tells of the group versions that a reading may have meant and whose resources could not be read.
func (c *catalog) unreadable(asked []reading) []error {
	var failed []error
	for _, group := range c.snapshot.Groups {
		mayBeMeant := slices.ContainsFunc(asked, func(r reading) bool { return !r.grouped || r.group == group.Name })
		for _, version := range group.Versions {
			if mayBeMeant && version.Err != nil {
				gv := schema.GroupVersion{Group: group.Name, Version: version.Name}
				failed = append(failed, fmt.Errorf("%s could not be read: %w", gv, version.Err))
			}
		}
	}
	return failed
}

// near finds the names that differ least from what was asked for, in any case.
func (c *catalog) near(name string) []string {
	type candidate struct {
		name string
		far  int
	}
	lower := strings.ToLower(name)
	most := 1 + len(lower)/4
	nearest := map[string]int{}
	for served, mappings := range c.named {
		far := distance(lower, strings.ToLower(served))
		if strings.HasPrefix(served, lower) && len(lower) > 2 {
			far = min(far, most)
		}
		for _, mapping := range mappings {
			resource := mapping.GVR.GroupResource().String()
			if best, seen := nearest[resource]; far <= most && (!seen || far < best) {
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
