package discovery

import (
	"cmp"
	"iter"
	"slices"
)

// ResourceFilter selects resources like the flags of kubectl api-resources. nil and zero values select all resources.
type ResourceFilter struct {
	// Verbs are required verbs: a resource must support all of them, for example list and watch for a cache.
	Verbs []string
	// Namespaced selects namespaced or cluster-scoped resources. nil selects both.
	Namespaced *bool
	// Groups are the accepted groups. "" is the core group.
	Groups []string
	// Categories are required categories: a resource must be in all of them.
	Categories []string
}

// PreferredResources yields each selected resource once, in the server's order. The version is the server's preferred version of
// the group. If the preferred version lacks the resource or is unhealthy, the next version with the resource is used, healthy
// versions first. The filter applies to this version only. Resources without verbs, with only subresources served, are omitted.
//
// An unreadable group version contributes its last known resources, or none. To require a complete list, check [Version.Healthy]
// of each of [Snapshot.Versions].
func (s *Snapshot) PreferredResources(filter *ResourceFilter) iter.Seq[*Resource] {
	filter = cmp.Or(filter, &ResourceFilter{})
	return func(yield func(*Resource) bool) {
		for g := range s.Groups {
			seen := map[string]bool{}
			for version := range s.Groups[g].HealthyFirst() {
				for _, resource := range version.Resources {
					if len(resource.Verbs) == 0 || seen[resource.GVR.Resource] {
						continue
					}
					seen[resource.GVR.Resource] = true
					if filter.selects(resource) && !yield(resource) {
						return
					}
				}
			}
		}
	}
}

func (f *ResourceFilter) selects(r *Resource) bool {
	return (f.Namespaced == nil || *f.Namespaced == r.Namespaced) &&
		(len(f.Groups) == 0 || slices.Contains(f.Groups, r.GVR.Group)) &&
		containsAll(r.Verbs, f.Verbs) && containsAll(r.Categories, f.Categories)
}

func containsAll(list, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(s string) bool { return !slices.Contains(list, s) })
}

// HealthyFirst yields the healthy versions followed by the unhealthy versions, both in the server's order.
func (g *Group) HealthyFirst() iter.Seq[*Version] {
	return func(yield func(*Version) bool) {
		for _, isHealthy := range [...]bool{true, false} {
			for i := range g.Versions {
				if version := &g.Versions[i]; version.Healthy() == isHealthy && !yield(version) {
					return
				}
			}
		}
	}
}
