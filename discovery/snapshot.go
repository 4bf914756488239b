package discovery

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot is the list of resources served at a point in time. It is immutable and safe for concurrent use. Callers must not
// change it.
type Snapshot struct {
	// Groups are in the server's order of preference. The core group, named "", is first.
	Groups []Group
	// TakenAt is the time of the request.
	TakenAt time.Time
	// Aggregated reports whether two requests returned all resources. Otherwise each group version took its own request.
	Aggregated bool
	// Removed are the resources that are no longer served, latest first. At most 1000 are kept.
	Removed []RemovedResource
	// Rejected has an error for each group or version with an invalid or duplicate name, at most 100.
	Rejected []error
}

// RemovedResource is a resource no longer served by the server.
type RemovedResource struct {
	Resource *Resource
	// DetectedAt is the time of the first snapshot without the resource.
	DetectedAt time.Time
}

// Group is an API group with its served versions, preferred version first.
type Group struct {
	Name     string
	Versions []Version
}

// Version is a version of a group.
type Version struct {
	Name string
	// Resources are in the server's order. If the version is stale or unreadable, they are the last known resources, if any.
	Resources []*Resource
	// Stale is set if the server could not reach the API server behind the version.
	Stale bool
	// Err is the error of reading the version's resources, or nil.
	Err error
}

// Healthy reports whether Resources are current: the version is neither stale nor unreadable.
func (v *Version) Healthy() bool { return !v.Stale && v.Err == nil }

// Resource is a resource of a group version.
type Resource struct {
	GVR schema.GroupVersionResource
	// GVK is the kind of its objects. GVK.Kind is "" if the server serves only subresources.
	GVK schema.GroupVersionKind
	// Singular is the singular name in lower case, such as "deployment".
	Singular   string
	ShortNames []string
	Categories []string
	Namespaced bool
	// Verbs are the verbs of the resource itself, such as "get" and "deletecollection".
	Verbs        []string
	Subresources []Subresource
	// StorageVersionHash changes with the storage version of the objects. It is "" with aggregated discovery.
	StorageVersionHash string
}

// Subresource is a part of an object with its own path, such as "status" or "scale".
type Subresource struct {
	Name string
	// GVK is the kind of the subresource, such as autoscaling/v1 Scale. It is empty if the server does not report it.
	GVK   schema.GroupVersionKind
	Verbs []string
}

// Supports reports whether the resource itself supports verb.
func (r *Resource) Supports(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Subresource returns the subresource with the given name.
func (r *Resource) Subresource(name string) (*Subresource, bool) {
	i := slices.IndexFunc(r.Subresources, func(s Subresource) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return &r.Subresources[i], true
}

// Versions yields every group version in the server's order.
func (s *Snapshot) Versions() iter.Seq2[schema.GroupVersion, *Version] {
	return func(yield func(schema.GroupVersion, *Version) bool) {
		for g := range s.Groups {
			group := &s.Groups[g]
			for v := range group.Versions {
				version := &group.Versions[v]
				if !yield(schema.GroupVersion{Group: group.Name, Version: version.Name}, version) {
					return
				}
			}
		}
	}
}

// Resources yields every resource of every version in the server's order.
func (s *Snapshot) Resources() iter.Seq[*Resource] {
	return func(yield func(*Resource) bool) {
		for _, version := range s.Versions() {
			for _, resource := range version.Resources {
				if !yield(resource) {
					return
				}
			}
		}
	}
}

func (s *Snapshot) resourcesByGVR() map[schema.GroupVersionResource]*Resource {
	resources := map[schema.GroupVersionResource]*Resource{}
	for resource := range s.Resources() {
		resources[resource.GVR] = resource
	}
	return resources
}
