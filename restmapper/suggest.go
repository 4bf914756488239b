package restmapper

import (
	"slices"
	"sort"
	"strings"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/editdistance"
)

// maxSuggestions bounds the suggestions of an error.
const maxSuggestions = 3

// suggest returns the resources with the smallest edit distance to the query, in any case. Plurals, singulars and kinds are
// compared, and short names with an optional s (svcs, deploys). A typed group must be similar to the resource's group unless the
// name matches exactly: then the group is wrong.
func (x *index) suggest(q *query) []string {
	distances := map[string]int{}
	var names []string // in the server's order, for deterministic sorting
	for _, in := range q.all() {
		typed := strings.ToLower(in.name)
		for resource := range x.resources() {
			distance, isSimilar := distanceTo(resource, typed)
			if !isSimilar || distance > 0 && !in.isSimilarGroup(resource.GVR.Group) {
				continue
			}
			name := resource.GVR.GroupResource().String()
			best, seen := distances[name]
			if !seen {
				names = append(names, name)
				best = distance
			}
			distances[name] = min(best, distance)
		}
	}
	sort.SliceStable(names, func(i, j int) bool { return distances[names[i]] < distances[names[j]] })
	return slices.DeleteFunc(names[:min(maxSuggestions, len(names))], func(name string) bool {
		best := distances[names[0]]
		return best <= 1 && distances[name] > best // a good match is enough
	})
}

// isSimilarGroup reports whether the typed group is similar to group.
func (in *interpretation) isSimilarGroup(group string) bool {
	if !in.hasGroup || in.inGroup(group) {
		return true
	}
	return in.group != "" && (strings.HasPrefix(group, in.group) || editdistance.Bounded(in.group, group, editdistance.Limit(in.group)) <= editdistance.Limit(in.group))
}

// distanceTo returns the distance of a lower-case name to the most similar name of a resource.
func distanceTo(resource *discovery.Resource, typed string) (distance int, isSimilar bool) {
	limit := editdistance.Limit(typed)
	best := limit + 1
	for _, name := range [...]string{resource.GVR.Resource, singular(resource), strings.ToLower(resource.GVK.Kind)} {
		best = min(best, editdistance.Bounded(typed, name, limit))
		if len(typed) > 2 && strings.HasPrefix(name, typed) {
			best = min(best, limit)
		}
	}
	for _, short := range resource.ShortNames {
		short = strings.ToLower(short)
		switch {
		case typed == short:
			best = 0
		case typed == short+"s", len(short) > 3 && editdistance.Bounded(typed, short, 1) == 1: // shorter names are too often similar
			best = min(best, 1)
		}
	}
	return best, best <= limit
}
