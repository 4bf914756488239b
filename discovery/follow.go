package discovery

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxRemoved bounds Snapshot.Removed.
const maxRemoved = 1000

// follow completes a snapshot by what the one before it knew: what versions that cannot be read now held last, and
// what is gone. It returns before itself where the two say the same.
func follow(before, next *Snapshot) *Snapshot {
	if before == nil {
		return next
	}
	keepKnown(before, next)
	next.Removed = removedSince(before, next)
	if before.Aggregated == next.Aggregated && reflect.DeepEqual(before.Removed, next.Removed) && sameGroups(before.Groups, next.Groups) {
		return before
	}
	return next
}

// keepKnown gives a version that is unhealthy and tells of no resources those that it had last.
func keepKnown(before, next *Snapshot) {
	known := byVersion(before)
	for g := range next.Groups {
		group := &next.Groups[g]
		for v := range group.Versions {
			version := &group.Versions[v]
			if !version.Healthy() && len(version.Resources) == 0 {
				if last := known[schema.GroupVersion{Group: group.Name, Version: version.Name}]; last != nil {
					version.Resources = last.Resources
				}
			}
		}
	}
}

func byVersion(s *Snapshot) map[schema.GroupVersion]*Version {
	versions := map[schema.GroupVersion]*Version{}
	for g := range s.Groups {
		for v := range s.Groups[g].Versions {
			version := &s.Groups[g].Versions[v]
			versions[schema.GroupVersion{Group: s.Groups[g].Name, Version: version.Name}] = version
		}
	}
	return versions
}

func byName(s *Snapshot) map[schema.GroupVersionResource]*Resource {
	resources := map[schema.GroupVersionResource]*Resource{}
	for _, group := range s.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				resources[resource.GVR] = resource
			}
		}
	}
	return resources
}

// removedSince lists what is gone, the latest first; what is there again is left out.
func removedSince(before, next *Snapshot) []Removed {
	var removed []Removed
	served := byName(next)
	for _, resource := range gone(before, served) {
		removed = append(removed, Removed{Resource: resource, Noticed: next.Taken})
	}
	for _, earlier := range before.Removed {
		if served[earlier.Resource.GVR] == nil && len(removed) < maxRemoved {
			removed = append(removed, earlier)
		}
	}
	return removed[:min(len(removed), maxRemoved)]
}

// gone lists, in the server's order, what was served before and is not now.
func gone(before *Snapshot, served map[schema.GroupVersionResource]*Resource) []*Resource {
	var resources []*Resource
	for _, group := range before.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				if served[resource.GVR] == nil {
					resources = append(resources, resource)
				}
			}
		}
	}
	return resources
}

func sameGroups(a, b []Group) bool {
	if len(a) != len(b) {
		return false
	}
	for g := range a {
		if a[g].Name != b[g].Name || len(a[g].Versions) != len(b[g].Versions) {
			return false
		}
		for v := range a[g].Versions {
			if !sameVersion(&a[g].Versions[v], &b[g].Versions[v]) {
				return false
			}
		}
	}
	return true
}

func sameVersion(a, b *Version) bool {
	return a.Name == b.Name && a.Stale == b.Stale && errorText(a.Err) == errorText(b.Err) &&
		slices.EqualFunc(a.Resources, b.Resources, sameResource)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
