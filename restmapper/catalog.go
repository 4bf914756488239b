package restmapper

import (
	"slices"
	"strings"

	"github.com/anykind/anykind/discovery"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// catalog is a snapshot with its resources indexed by their names; each list keeps the server's order.
type catalog struct {
	snapshot *discovery.Snapshot
	// named holds plurals and singulars, in lower case, and kinds as they are.
	named map[string][]*Mapping
	short map[string][]*Mapping
}

func newCatalog(snapshot *discovery.Snapshot) *catalog {
	c := &catalog{snapshot: snapshot, named: map[string][]*Mapping{}, short: map[string][]*Mapping{}}
	for _, group := range snapshot.Groups {
		for _, version := range freshFirst(group.Versions) {
			for _, resource := range version.Resources {
				c.add(resource)
			}
		}
	}
	return c
}

// freshFirst puts stale versions last: the preferred version is the first that is not stale.
func freshFirst(versions []discovery.Version) []discovery.Version {
	sorted := slices.Clone(versions)
	slices.SortStableFunc(sorted, func(a, b discovery.Version) int {
		switch {
		case a.Stale == b.Stale:
			return 0
		case a.Stale:
			return 1
		default:
			return -1
		}
	})
	return sorted
}

func (c *catalog) add(mapping *Mapping) {
	addOnce(c.named, mapping.GVR.Resource, mapping)
	if kind := mapping.GVK.Kind; kind != "" {
		singular := mapping.Singular
		if singular == "" {
			singular = strings.ToLower(kind)
		}
		addOnce(c.named, singular, mapping)
		addOnce(c.named, kind, mapping)
	}
	for _, short := range mapping.ShortNames {
		addOnce(c.short, short, mapping)
	}
}

// addOnce keeps a resource whose names are alike, such as a kind in lower case, from matching twice.
func addOnce(index map[string][]*Mapping, name string, mapping *Mapping) {
	if !slices.Contains(index[name], mapping) {
		index[name] = append(index[name], mapping)
	}
}

// resource resolves a name as a user types it.
func (c *catalog) resource(name string) (*Mapping, error) {
	for _, asked := range readings(name) {
		for _, index := range []map[string][]*Mapping{c.named, c.short} {
			if found := asked.among(index); len(found) > 0 {
				return choose(name, found)
			}
		}
	}
	return nil, c.noMatch(name, readings(name))
}

// kind resolves a kind whose group is known and whose version may be.
func (c *catalog) kind(gvk schema.GroupVersionKind) (*Mapping, error) {
	asked := reading{name: gvk.Kind, version: gvk.Version, group: gvk.Group, grouped: true}
	found := slices.DeleteFunc(asked.among(c.named), func(m *Mapping) bool { return m.GVK.Kind != gvk.Kind })
	if len(found) == 0 {
		return nil, c.noMatch(kindName(gvk), []reading{asked})
	}
	return choose(kindName(gvk), found)
}

// kindName writes a kind as a user would: Deployment.v1.apps, Pod.v1, Deployment.apps.
func kindName(gvk schema.GroupVersionKind) string {
	parts := slices.DeleteFunc([]string{gvk.Kind, gvk.Version, gvk.Group}, func(part string) bool { return part == "" })
	return strings.Join(parts, ".")
}

// choose prefers the core group, then the server's preferred version within the one group that is left.
func choose(name string, found []*Mapping) (*Mapping, error) {
	if core := inGroup(found, ""); len(core) > 0 {
		found = core
	}
	first := found[0]
	// The same resource in other versions, which come later in the server's order, is no ambiguity.
	others := slices.DeleteFunc(slices.Clone(found[1:]), func(m *Mapping) bool {
		return m.GVR.GroupResource() == first.GVR.GroupResource()
	})
	if len(others) > 0 {
		return nil, &AmbiguousError{Name: name, Candidates: append([]schema.GroupVersionResource{first.GVR}, resources(others)...)}
	}
	return first, nil
}

func inGroup(found []*Mapping, group string) []*Mapping {
	var in []*Mapping
	for _, mapping := range found {
		if mapping.GVR.Group == group {
			in = append(in, mapping)
		}
	}
	return in
}

func resources(found []*Mapping) []schema.GroupVersionResource {
	var gvrs []schema.GroupVersionResource
	seen := map[schema.GroupResource]bool{}
	for _, mapping := range found {
		if group := mapping.GVR.GroupResource(); !seen[group] {
			seen[group] = true
			gvrs = append(gvrs, mapping.GVR)
		}
	}
	return gvrs
}
