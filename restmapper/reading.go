package restmapper

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reading is one way to understand what a user typed.
type reading struct {
	name, version, group string
	// grouped says that the group was typed: "" then means the core group, and else any.
	grouped bool
	// kind says that the name can be nothing but a kind, in its own case.
	kind bool
	// prefix says that the group may be the beginning of one, as in storageclasses.storage.
	prefix bool
}

// query is what one lookup asks for. It holds no pointers to the stack, so that a lookup that finds allocates nothing.
type query struct {
	// text is what was typed; "" where a kind was asked for, whose text is written when an error needs it.
	text string
	// asked are the count readings of it, in the order in which kubectl tries them.
	asked [2]reading
	count int
	// versions are those that will do, where a caller named several.
	versions []string
}

// named reads a name: a.b.c is the resource a of version b and group c, or else the resource a of group b.c.
func named(text string) query {
	q := query{text: text, count: 1}
	first, rest, dotted := strings.Cut(text, ".")
	if !dotted {
		q.asked[0] = reading{name: first}
		return q
	}
	asGroup := reading{name: first, group: rest, grouped: true}
	if version, group, ok := strings.Cut(rest, "."); ok {
		q.asked = [2]reading{{name: first, version: version, group: group, grouped: true}, asGroup}
		q.count = 2
		return q
	}
	q.asked[0] = asGroup
	return q
}

// ofKind asks for a kind whose group is known and whose version may be.
func ofKind(gvk schema.GroupVersionKind) query {
	return query{count: 1, asked: [2]reading{{name: gvk.Kind, version: gvk.Version, group: gvk.Group, grouped: true, kind: true}}}
}

func (q *query) readings() []reading { return q.asked[:q.count] }

// String is what was typed, or the kind as a user would type it: Deployment.v1.apps, Pod.v1, Deployment.apps.
func (q *query) String() string {
	r := q.asked[0]
	if q.text != "" || !r.kind {
		return q.text
	}
	version := r.version
	if version == "" {
		version = strings.Join(q.versions, "|")
	}
	parts := slices.DeleteFunc([]string{r.name, version, r.group}, func(part string) bool { return part == "" })
	return strings.Join(parts, ".")
}

// admits says whether a mapping that has the name is in the group and version that were typed.
func (r *reading) admits(m *Mapping) bool {
	return (!r.grouped || r.inGroup(m.GVR.Group)) && (r.version == "" || m.GVR.Version == r.version) && (!r.kind || m.GVK.Kind == r.name)
}

func (r *reading) inGroup(group string) bool {
	if r.prefix {
		return r.group != "" && strings.HasPrefix(group, r.group)
	}
	return group == r.group
}

// names says whether a mapping has the name and is in the group and version that were typed.
func (r *reading) names(m *Mapping) bool {
	if !r.admits(m) {
		return false
	}
	is := func(name string) bool { return strings.EqualFold(name, r.name) }
	return is(m.GVR.Resource) || is(singular(m)) || is(m.GVK.Kind) || slices.ContainsFunc(m.ShortNames, is)
}

// singular is the name of one, which some servers leave to be made of the kind.
func singular(m *Mapping) string {
	if m.Singular == "" {
		return strings.ToLower(m.GVK.Kind)
	}
	return m.Singular
}
