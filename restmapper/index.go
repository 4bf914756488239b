package restmapper

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
)

// rank orders the kinds of names: lower ranks win.
type rank uint8

const (
	rankName rank = iota // plurals, singulars in lower case, and kinds
	rankShortName
	rankLowerKind // kinds in lower case, unless equal to the singular
)

// index finds the resources of a snapshot by all their names. Linked lists in a shared slice, instead of a slice for each name,
// keep the index at a few dozen allocations for 2,000 resources.
type index struct {
	snapshot *discovery.Snapshot
	// lists are the entries of each name, in the order of preference.
	lists   map[string]entryList
	entries []entry
}

// entryList holds the positions of the first and the last entry of a linked list.
type entryList struct{ first, last int32 }

type entry struct {
	resource *discovery.Resource
	next     int32 // position of the next entry; 0 is unused and ends the list
	rank     rank
}

func newIndex(snapshot *discovery.Snapshot) *index {
	names := 1
	for resource := range snapshot.Resources() {
		names += 3 + len(resource.ShortNames)
	}
	x := &index{snapshot: snapshot, lists: make(map[string]entryList, names), entries: make([]entry, 1, names)}
	for resource := range x.resources() {
		x.add(resource)
	}
	return x
}

// resources yields every resource in the order of preference: the core group first, and unhealthy versions last in their
// group.
func (x *index) resources() iter.Seq[*discovery.Resource] {
	return func(yield func(*discovery.Resource) bool) {
		for _, group := range x.snapshot.Groups {
			for version := range group.HealthyFirst() {
				for _, resource := range version.Resources {
					if !yield(resource) {
						return
					}
				}
			}
		}
	}
}

// add indexes the names of a resource by rank.
func (x *index) add(resource *discovery.Resource) {
	x.addName(resource.GVR.Resource, rankName, resource)
	x.addName(singular(resource), rankName, resource)
	x.addName(resource.GVK.Kind, rankName, resource)
	for _, short := range resource.ShortNames {
		x.addName(short, rankShortName, resource)
	}
	if !strings.EqualFold(resource.GVK.Kind, resource.Singular) {
		x.addName(strings.ToLower(resource.GVK.Kind), rankLowerKind, resource)
	}
}

// addName adds an entry unless the resource already has an entry for the name.
func (x *index) addName(name string, by rank, resource *discovery.Resource) {
	if name == "" {
		return
	}
	list, exists := x.lists[name]
	if exists && x.entries[list.last].resource == resource {
		return
	}
	at := int32(len(x.entries))
	x.entries = append(x.entries, entry{resource: resource, rank: by})
	if exists {
		x.entries[list.last].next = at
	} else {
		list.first = at
	}
	list.last = at
	x.lists[name] = list
}

// named yields the entries of a name, in the order of preference.
func (x *index) named(name string) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for at := x.lists[name].first; at != 0 && yield(&x.entries[at]); at = x.entries[at].next {
		}
	}
}

// matches yields the resources of a rank with the name as typed, or else with the name in lower case. It must stay small enough
// for inlining: otherwise each loop would allocate.
func (x *index) matches(in *interpretation, by rank) iter.Seq[*discovery.Resource] {
	return func(yield func(*discovery.Resource) bool) {
		if x.eachMatch(in, by, in.name, yield) {
			return
		}
		if lower := strings.ToLower(in.name); lower != in.name {
			x.eachMatch(in, by, lower, yield)
		}
	}
}

// eachMatch reports whether there was a match.
func (x *index) eachMatch(in *interpretation, by rank, name string, yield func(*discovery.Resource) bool) (found bool) {
	for e := range x.named(name) {
		if e.rank == by && in.admits(e.resource) {
			found = true
			if !yield(e.resource) {
				break
			}
		}
	}
	return found
}

// resolve returns the single resource of a query. A successful lookup does not allocate.
func (x *index) resolve(q query) (*discovery.Resource, error) {
	for i := range q.count {
		for _, by := range [...]rank{rankName, rankShortName} {
			if found, err := x.unique(&q, &q.interpretations[i], by); found != nil || err != nil {
				return found, err
			}
		}
	}
	if q.interpretations[0].isKind {
		return nil, errNoMatch
	}
	for i := range q.count {
		if found, err := x.unique(&q, &q.interpretations[i], rankLowerKind); found != nil || err != nil {
			return found, err
		}
	}
	// Like kubectl, treat the group as a prefix if nothing else matches.
	for _, in := range q.all() {
		if in.version != "" {
			continue
		}
		in.groupIsPrefix = true
		for _, by := range [...]rank{rankName, rankShortName} {
			if found, err := x.unique(&q, &in, by); found != nil || err != nil {
				return found, err
			}
		}
	}
	return nil, errNoMatch
}

// unique returns the preferred resource with the name, nil for no match, and an AmbiguousError for a conflict.
func (x *index) unique(q *query, in *interpretation, by rank) (*discovery.Resource, error) {
	var found *discovery.Resource
	for resource := range x.matches(in, by) {
		switch {
		case found == nil:
			found = resource
		case conflicts(found, resource):
			return nil, x.ambiguous(q, in, by, found)
		}
	}
	return found, nil
}

// conflicts reports whether the second match is as good as the first. A second version of the same resource is no conflict, and
// the core group is preferred.
func conflicts(first, second *discovery.Resource) bool {
	if first.GVR.Group == second.GVR.Group {
		return first.GVR.Resource != second.GVR.Resource
	}
	return first.GVR.Group != ""
}

func (x *index) ambiguous(q *query, in *interpretation, by rank, first *discovery.Resource) error {
	err := &AmbiguousError{Name: q.String(), Candidates: []schema.GroupVersionResource{first.GVR}}
	listed := map[schema.GroupResource]bool{first.GVR.GroupResource(): true}
	for resource := range x.matches(in, by) {
		if gr := resource.GVR.GroupResource(); conflicts(first, resource) && !listed[gr] {
			listed[gr] = true
			err.Candidates = append(err.Candidates, resource.GVR)
		}
	}
	return err
}

// resolveList returns the resources of a category, or the single resource of a query.
func (x *index) resolveList(q query) ([]*discovery.Resource, error) {
	if q.isBare() && x.isCategory(q.text) {
		return x.category(q.text), nil
	}
	resource, err := x.resolve(q)
	if err != nil {
		return nil, err
	}
	return []*discovery.Resource{resource}, nil
}

func (x *index) isCategory(name string) bool {
	return slices.ContainsFunc(x.entries[1:], func(e entry) bool { return slices.Contains(e.resource.Categories, name) })
}

// category returns each member of a category in its preferred version, even if a less preferred version names the category. A
// member is repeated if several of its versions name the category.
func (x *index) category(name string) []*discovery.Resource {
	var members []*discovery.Resource
	preferred := map[schema.GroupResource]*discovery.Resource{}
	for resource := range x.resources() {
		gr := resource.GVR.GroupResource()
		if preferred[gr] == nil {
			preferred[gr] = resource
		}
		if slices.Contains(resource.Categories, name) {
			members = append(members, preferred[gr])
		}
	}
	return members
}

// singular returns the singular of a resource, or the kind in lower case if the server omits the singular.
func singular(r *discovery.Resource) string { return cmp.Or(r.Singular, strings.ToLower(r.GVK.Kind)) }
