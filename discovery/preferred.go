package discovery

import (
	"cmp"
	"iter"
	"slices"
)

// ResourceFilter selects resources as the flags of kubectl api-resources do. nil and zero values select all.
type ResourceFilter struct {
	// Verbs are verbs that the resource must have, all of them: list and watch for a cache, for example.
	Verbs []string
	// Namespaced selects namespaced or cluster-scoped resources; nil selects both.
	Namespaced *bool
	// Groups are the groups of which one must be the resource's; "" is the core group.
	Groups []string
	// Categories are categories that the resource must be in, all of them.
	Categories []string
}

// PreferredResources yields each resource that the filter selects once, in the server's order: in the first version of its
// group that has it, which is the server's preferred version unless that lacks the resource or is unhealthy. The filter is
// applied to that version alone. Resources without verbs, of which only subresources are served, are omitted.
//
// A group version that could not be read contributes its last known resources, or none: a caller that must not overlook
// anything checks [Version.Healthy] of each of [Snapshot.Versions].
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

// HealthyFirst yields the group's healthy versions and then the others, both in the server's order.
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
