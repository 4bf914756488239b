package restmapper

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
)

// interpretation is a possible meaning of a typed name.
type interpretation struct {
	name, version, group string
	hasGroup             bool // a group was typed; "" is the core group if hasGroup, and otherwise any group
	isKind               bool // the name is a kind only, case-sensitive
	groupIsPrefix        bool // the group may be abbreviated, as in storageclasses.storage
}

// query is the name of a lookup. It is passed by value and has no pointers to the stack, to avoid allocations.
type query struct {
	// text is the name as typed. It is "" for a kind or resource of a RESTMapper: their text is made only for errors.
	text string
	// interpretations has count meanings of the text, in kubectl's order.
	interpretations [2]interpretation
	count           int
	// versions are the acceptable versions if the caller named several.
	versions []string
}

// parseName parses a.b.c as resource a, version b and group c, or else as resource a and group b.c.
func parseName(text string) query {
	q := query{text: text, count: 1}
	name, rest, hasGroup := strings.Cut(text, ".")
	if version, group, ok := strings.Cut(rest, "."); ok {
		q.interpretations[0] = interpretation{name: name, version: version, group: group, hasGroup: true}
		q.count = 2
	}
	q.interpretations[q.count-1] = interpretation{name: name, group: rest, hasGroup: hasGroup}
	return q
}

// kindQuery queries a kind of a group; its version may be "".
func kindQuery(gvk schema.GroupVersionKind) query {
	return query{count: 1, interpretations: [2]interpretation{{
		name: gvk.Kind, version: gvk.Version, group: gvk.Group, hasGroup: true, isKind: true,
	}}}
}

func (q *query) all() []interpretation { return q.interpretations[:q.count] }

// isBare reports whether only a name was typed.
func (q *query) isBare() bool { return q.count == 1 && !q.interpretations[0].hasGroup }

func (q *query) acceptsVersion(version string) bool {
	return len(q.versions) == 0 || slices.Contains(q.versions, version)
}

// mayBeInGroup reports whether the typed group, possibly abbreviated, matches the group.
func (q *query) mayBeInGroup(group string) bool {
	return slices.ContainsFunc(q.all(), func(in interpretation) bool { return !in.hasGroup || in.mayBeInGroup(group) })
}

// String returns the text as typed, or a typical form: Deployment.v1.apps, Pod.v1, Deployment.apps.
func (q *query) String() string {
	if q.text != "" {
		return q.text
	}
	in := q.interpretations[0]
	version := cmp.Or(in.version, strings.Join(q.versions, "|"))
	parts := slices.DeleteFunc([]string{in.name, version, in.group}, func(part string) bool { return part == "" })
	return strings.Join(parts, ".")
}

// admits reports whether a resource with the name also has the group, the version and the exact kind.
func (in *interpretation) admits(r *discovery.Resource) bool {
	return (!in.hasGroup || in.inGroup(r.GVR.Group)) && (in.version == "" || r.GVR.Version == in.version) && (!in.isKind || r.GVK.Kind == in.name)
}

func (in *interpretation) inGroup(group string) bool {
	if in.groupIsPrefix {
		return in.group != "" && strings.HasPrefix(group, in.group)
	}
	return group == in.group
}

// mayBeInGroup is like inGroup, but accepts an abbreviated group unless the query is for a kind or has a version.
func (in *interpretation) mayBeInGroup(group string) bool {
	prefix := interpretation{group: in.group, groupIsPrefix: in.version == "" && !in.isKind}
	return in.inGroup(group) || prefix.inGroup(group)
}

// isNameOf reports whether a resource has the name, in any case, and is admitted.
func (in *interpretation) isNameOf(r *discovery.Resource) bool {
	isName := func(name string) bool { return strings.EqualFold(name, in.name) }
	return in.admits(r) &&
		(isName(r.GVR.Resource) || isName(singular(r)) || isName(r.GVK.Kind) || slices.ContainsFunc(r.ShortNames, isName))
}
