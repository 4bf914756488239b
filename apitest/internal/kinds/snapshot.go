package kinds

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// group is an API group of a snapshot.
type group struct {
	name     string
	priority int
	versions []*groupVersion // the preferred version first
}

// groupVersion is a served version of a group with its resources, sorted by plural.
type groupVersion struct {
	group, version string
	priority       int
	resources      []*Resource
}

func (v *groupVersion) name() string {
	return schema.GroupVersion{Group: v.group, Version: v.version}.String()
}

// snapshot is the immutable state of a registry. Its documents are built at first use.
type snapshot struct {
	err       error     // of decoding the recorded resources
	base      *snapshot // the built-in resources, not indexed in byPlural and byKind; nil in the base itself
	groups    []*group  // in the order of aggregated discovery, with "" first
	resources []*Resource
	byPlural  map[schema.GroupVersionResource]*Resource
	byKind    map[schema.GroupVersionKind]*Resource

	aggregated func() (aggregatedDocuments, error)
	v3         func() (map[string]openapiPath, error)
	v2         func() (string, error)
	v2Protobuf func() ([]byte, error)
}

// builtinSnapshot returns the snapshot without definitions, shared by the process.
var builtinSnapshot = sync.OnceValue(func() *snapshot { return newSnapshot(nil, nil) })

// newSnapshot merges the built-in groups with the groups of definitions. Built-in groups without definitions are shared, not
// copied.
func newSnapshot(base *snapshot, definitions map[string][]*Resource) *snapshot {
	s := &snapshot{base: base, byPlural: map[schema.GroupVersionResource]*Resource{}, byKind: map[schema.GroupVersionKind]*Resource{}}
	builtins, err := builtin()
	s.err = err
	s.groups = mergeGroups(builtins, definitions)
	for _, g := range s.groups {
		for _, v := range g.versions {
			s.resources = append(s.resources, v.resources...)
		}
	}
	for _, resource := range s.resources {
		if base == nil || resource.Definition != nil {
			s.index(resource)
		}
	}
	s.aggregated = sync.OnceValues(s.makeAggregated)
	s.v3 = sync.OnceValues(s.openapiPaths)
	s.v2 = sync.OnceValues(s.openapiV2)
	s.v2Protobuf = sync.OnceValues(s.makeV2Protobuf)
	return s
}

func (s *snapshot) index(resource *Resource) {
	s.byPlural[resource.GroupVersionResource()] = resource
	if kind := resource.GroupVersionKind(); s.byKind[kind] == nil {
		s.byKind[kind] = resource
	}
}

func (s *snapshot) lookup(resource schema.GroupVersionResource) *Resource {
	if found := s.byPlural[resource]; found != nil || s.base == nil {
		return found
	}
	return s.base.lookup(resource)
}

// serves reports whether any version of the resource is served.
func (s *snapshot) serves(resource schema.GroupResource) bool {
	return slices.ContainsFunc(s.resources, func(r *Resource) bool { return r.GroupResource() == resource })
}

func (s *snapshot) ofKind(kind schema.GroupVersionKind) *Resource {
	if found := s.byKind[kind]; found != nil || s.base == nil {
		return found
	}
	return s.base.ofKind(kind)
}

func mergeGroups(builtins []*group, definitions map[string][]*Resource) []*group {
	groups := map[string]*group{}
	for _, g := range builtins {
		groups[g.name] = g
	}
	copied := map[string]bool{} // groups owned by this snapshot
	for _, resources := range definitions {
		for _, resource := range resources {
			g := groups[resource.Group]
			switch {
			case g == nil:
				g = &group{name: resource.Group, priority: definitionGroupPriority}
			case !copied[resource.Group]:
				g = &group{name: g.name, priority: g.priority, versions: slices.Clone(g.versions)}
			}
			groups[g.name] = g
			copied[g.name] = true
			g.add(resource)
		}
	}
	merged := make([]*group, 0, len(groups))
	for _, g := range groups {
		if copied[g.name] {
			g.sort()
		}
		merged = append(merged, g)
	}
	slices.SortFunc(merged, func(a, b *group) int {
		if a.name == "" || b.name == "" {
			return cmp.Compare(a.name, b.name)
		}
		return cmp.Or(-cmp.Compare(a.priority, b.priority), cmp.Compare(a.name, b.name))
	})
	return merged
}

// add adds a version of a CRD's resource. It does not modify versions of built-in kinds.
func (g *group) add(resource *Resource) {
	for _, v := range g.versions {
		if v.version == resource.Version {
			if v.priority == definitionVersionPriority {
				v.resources = append(v.resources, resource)
			}
			return
		}
	}
	g.versions = append(g.versions, &groupVersion{
		group: g.name, version: resource.Version, priority: definitionVersionPriority, resources: []*Resource{resource},
	})
}

func (g *group) sort() {
	slices.SortFunc(g.versions, func(a, b *groupVersion) int {
		return cmp.Or(-cmp.Compare(a.priority, b.priority), -version.CompareKubeAwareVersionStrings(a.version, b.version))
	})
	for _, v := range g.versions {
		if v.priority == definitionVersionPriority {
			slices.SortFunc(v.resources, func(a, b *Resource) int { return strings.Compare(a.Plural, b.Plural) })
		}
	}
}

// legacyGroups returns the groups, without "", in the order of legacy discovery. Ties are broken by APIService name, such as
// "v1.example.com".
func (s *snapshot) legacyGroups() []*group {
	groups := slices.DeleteFunc(slices.Clone(s.groups), func(g *group) bool { return g.name == "" })
	firstName := func(g *group) string {
		names := make([]string, 0, len(g.versions))
		for _, v := range g.versions {
			names = append(names, v.version+"."+g.name)
		}
		return slices.Min(names)
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(-cmp.Compare(a.priority, b.priority), strings.Compare(firstName(a), firstName(b)))
	})
	return groups
}

func (s *snapshot) group(name string) *group {
	for _, g := range s.groups {
		if g.name == name {
			return g
		}
	}
	return nil
}

func (s *snapshot) version(groupName, versionName string) *groupVersion {
	if g := s.group(groupName); g != nil {
		for _, v := range g.versions {
			if v.version == versionName {
				return v
			}
		}
	}
	return nil
}

func (s *snapshot) versions(groupName string) []string {
	var names []string
	if g := s.group(groupName); g != nil {
		for _, v := range g.versions {
			names = append(names, v.version)
		}
	}
	return names
}
