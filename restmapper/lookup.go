package restmapper

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errMissing says that a catalog lacks what was asked for. What a user is told is made only when the server was asked
// again: see [catalog.missing].
var errMissing = errors.New("no match")

// one resolves a query to the one mapping that it means. Where it finds that, it allocates nothing.
func (c *catalog) one(q query) (*Mapping, error) {
	for i := range q.count {
		for _, by := range [...]rank{byName, byShortName} {
			if found, several := c.pick(&q.asked[i], by); found != nil {
				return c.sole(&q, found, several, &q.asked[i], by)
			}
		}
	}
	if q.asked[0].kind {
		return nil, errMissing
	}
	for i := range q.count {
		if found, several := c.pick(&q.asked[i], byLowerKind); found != nil {
			return c.sole(&q, found, several, &q.asked[i], byLowerKind)
		}
	}
	return c.oneByPrefix(&q)
}

// oneByPrefix takes the group for the beginning of one, as kubectl does where nothing else matches.
func (c *catalog) oneByPrefix(q *query) (*Mapping, error) {
	for _, r := range q.readings() {
		r.prefix = true
		for _, by := range [...]rank{byName, byShortName} {
			if found, several := c.pick(&r, by); found != nil && r.version == "" {
				return c.sole(q, found, several, &r, by)
			}
		}
	}
	return nil, errMissing
}

// pick takes the first mapping that has such a claim, and says whether another resource has one as good. The core
// group is first and wins over all others.
func (c *catalog) pick(r *reading, by rank) (found *Mapping, several bool) {
	found, several = c.pickNamed(r, by, r.name)
	if found != nil {
		return found, several
	}
	if lower := strings.ToLower(r.name); lower != r.name {
		return c.pickNamed(r, by, lower)
	}
	return nil, false
}

func (c *catalog) pickNamed(r *reading, by rank, name string) (found *Mapping, several bool) {
	for at := c.chains[name].first; at != 0; at = c.entries[at].next {
		e := &c.entries[at]
		switch {
		case e.rank != by || !r.admits(e.mapping):
		case found == nil:
			found = e.mapping
		case rivals(found, e.mapping):
			return found, true
		}
	}
	return found, false
}

// rivals says whether the second of two has as good a claim as the first: it is another resource, not the same in
// another version, and the first is not in the core group alone.
func rivals(first, second *Mapping) bool {
	if first.GVR.Group == second.GVR.Group {
		return first.GVR.Resource != second.GVR.Resource
	}
	return first.GVR.Group != ""
}

// sole is the mapping that was found, or an error where it has rivals.
func (c *catalog) sole(q *query, found *Mapping, several bool, r *reading, by rank) (*Mapping, error) {
	if !several {
		return found, nil
	}
	ambiguous := &AmbiguousError{Name: q.String(), Candidates: []schema.GroupVersionResource{found.GVR}}
	listed := map[schema.GroupResource]bool{found.GVR.GroupResource(): true}
	for _, rival := range c.all(r, by) {
		if group := rival.GVR.GroupResource(); rivals(found, rival) && !listed[group] {
			listed[group] = true
			ambiguous.Candidates = append(ambiguous.Candidates, rival.GVR)
		}
	}
	return nil, ambiguous
}

// all lists every mapping that has such a claim, in the server's order.
func (c *catalog) all(r *reading, by rank) []*Mapping {
	found := c.allNamed(r, by, r.name)
	if lower := strings.ToLower(r.name); len(found) == 0 && lower != r.name {
		return c.allNamed(r, by, lower)
	}
	return found
}

func (c *catalog) allNamed(r *reading, by rank, name string) []*Mapping {
	var found []*Mapping
	for at := c.chains[name].first; at != 0; at = c.entries[at].next {
		if e := &c.entries[at]; e.rank == by && r.admits(e.mapping) {
			found = append(found, e.mapping)
		}
	}
	return found
}
