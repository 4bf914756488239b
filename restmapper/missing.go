package restmapper

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/anykind/anykind/discovery"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// missing says all that is known about a name that was not found.
func (c *catalog) missing(q *query) error {
	name, category := q.String(), q.isBare() && c.isCategory(q.text)
	if causes := c.unreadable(q); len(causes) > 0 && !category {
		return &UnavailableError{Name: name, Near: c.near(q), Causes: causes}
	}
	err := &NoMatchError{Name: name, Versions: c.otherVersions(q), Removed: c.removed(q), Category: category}
	if len(err.Versions) == 0 && !category {
		err.Near, err.Group = c.near(q), c.unknownGroup(q)
	}
	return err
}

// unknownGroup returns the group that was typed if the server serves no group that begins like it.
func (c *catalog) unknownGroup(q *query) string {
	typed := q.asked[0]
	switch {
	case q.count == 2 && !isVersion(typed.version):
		typed = q.asked[1]
	case q.count == 1 && isVersion(typed.group): // pods.v1
		return ""
	}
	begins := func(g discovery.Group) bool { return strings.HasPrefix(g.Name, typed.group) }
	if !strings.ContainsFunc(typed.group, unicode.IsLetter) || slices.ContainsFunc(c.snapshot.Groups, begins) {
		return ""
	}
	return typed.group
}

// isVersion reports whether a part of a name looks like a version.
func isVersion(part string) bool {
	return len(part) > 1 && part[0] == 'v' && '0' <= part[1] && part[1] <= '9' && !strings.Contains(part, ".")
}

// mayBeIn reports whether what is asked for may be in a group.
func (q *query) mayBeIn(group string) bool {
	return slices.ContainsFunc(q.readings(), func(r reading) bool {
		beginning := reading{group: r.group, prefix: r.version == "" && !r.kind}
		return !r.grouped || r.inGroup(group) || beginning.inGroup(group)
	})
}

func (q *query) isBare() bool { return q.count == 1 && !q.asked[0].grouped }

// otherVersions are the versions in which the server has what was asked for in one that it lacks.
func (c *catalog) otherVersions(q *query) []string {
	var others []string
	for _, r := range q.readings() {
		if r.version == "" && len(q.versions) == 0 {
			continue
		}
		r.version = ""
		for _, other := range c.all(&r, byName) {
			if !slices.Contains(others, other.GVR.Version) {
				others = append(others, other.GVR.Version)
			}
		}
	}
	return others
}

// removed is when a resource of that name was last noticed to be gone.
func (c *catalog) removed(q *query) time.Time {
	for _, gone := range c.snapshot.Removed {
		for _, r := range q.readings() {
			if r.names(gone.Resource) && q.takes(gone.Resource.GVR.Version) {
				return gone.Noticed
			}
		}
	}
	return time.Time{}
}

// takes says whether a version is one of those that will do.
func (q *query) takes(version string) bool {
	return len(q.versions) == 0 || slices.Contains(q.versions, version)
}

// unreadable tells of the group versions that may hold the name and cannot be read now.
func (c *catalog) unreadable(q *query) []error {
	var causes []error
	for _, group := range c.snapshot.Groups {
		for i := range group.Versions {
			version := &group.Versions[i]
			if !version.Healthy() && q.takes(version.Name) && mayHold(q, group.Name, version) {
				causes = append(causes, sickness(schema.GroupVersion{Group: group.Name, Version: version.Name}, version))
			}
		}
	}
	return causes
}

func mayHold(q *query, group string, version *discovery.Version) bool {
	return slices.ContainsFunc(q.readings(), func(r reading) bool {
		if r.version != "" && r.version != version.Name {
			return false
		}
		if !r.grouped {
			// One broken group must not make every mistyped name of the others an open question.
			return len(version.Resources) == 0
		}
		beginning := reading{group: r.group, prefix: r.version == "" && !r.kind}
		return r.inGroup(group) || beginning.inGroup(group)
	})
}

func sickness(gv schema.GroupVersion, version *discovery.Version) error {
	if version.Err != nil {
		return fmt.Errorf("%s could not be read: %w", gv, version.Err)
	}
	return fmt.Errorf("%s is stale: the server cannot reach who serves it (see APIService %s.%s)", gv, gv.Version, gv.Group)
}
