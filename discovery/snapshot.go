package discovery

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot is the list of resources that the server served at one time. It is immutable and safe for concurrent use: callers must not change it.
type Snapshot struct {
	// Groups are in the server's order of preference, the core group, whose name is "", first.
	Groups []Group
	// TakenAt is the time of the request.
	TakenAt time.Time
	// Aggregated reports whether two requests returned everything; otherwise each group version had its own.
	Aggregated bool
	// Removed are the resources that the client knew and that the server has stopped serving, the latest first; at most
	// 1000.
	Removed []RemovedResource
	// Rejected are errors for the groups and versions with names that cannot be used; at most 100.
	Rejected []error
}

// RemovedResource is a resource that the server no longer serves.
type RemovedResource struct {
	Resource *Resource
	// DetectedAt is the time at which the client first saw that the resource is gone.
	DetectedAt time.Time
}

// Group is an API group with the versions that the server serves, the preferred one first.
type Group struct {
	Name     string
	Versions []Version
}

// Version is one version of a group.
type Version struct {
	Name string
	// Resources are in the server's order. If the version is stale or could not be read they are the last known ones, if any.
	Resources []*Resource
	// Stale reports that the server itself could not reach the API server behind this version.
	Stale bool
	// Err is why the resources of this version could not be read; nil if they were.
	Err error
}

// Healthy reports whether the version's resources are those that the server has now.
func (v *Version) Healthy() bool { return !v.Stale && v.Err == nil }

// Resource is one resource of a group version, with everything that is needed to address it.
type Resource struct {
	GVR schema.GroupVersionResource
	// GVK is the kind of its objects. Its Kind is "" if the server serves only subresources of it.
	GVK schema.GroupVersionKind
	// Singular is the singular name in lower case, such as "deployment".
	Singular   string
	ShortNames []string
	Categories []string
	Namespaced bool
	// Verbs are the verbs of the resource itself, such as "get" and "deletecollection".
	Verbs        []string
	Subresources []Subresource
	// StorageVersionHash changes with the version in which objects are stored; "" with aggregated discovery, which lacks it.
	StorageVersionHash string
}

// Subresource is a part of a resource's objects with a path of its own, such as "status" or "scale".
type Subresource struct {
	Name string
	// GVK is the kind of its representation, such as autoscaling/v1 Scale; empty if the server does not say.
	GVK   schema.GroupVersionKind
	Verbs []string
}

// Supports reports whether the resource itself has the verb.
func (r *Resource) Supports(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Subresource returns the subresource of a name.
func (r *Resource) Subresource(name string) (*Subresource, bool) {
	i := slices.IndexFunc(r.Subresources, func(s Subresource) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return &r.Subresources[i], true
}

// Supports reports whether the subresource has the verb.
func (s *Subresource) Supports(verb string) bool { return slices.Contains(s.Verbs, verb) }

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
