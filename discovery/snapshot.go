package discovery

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot is what the server served at one moment. It is immutable, and so safe for concurrent use: nobody may
// change what it holds.
type Snapshot struct {
	// Groups stand in the server's order of preference, the core group, whose name is "", first.
	Groups []Group
	// Taken is when the server was asked.
	Taken time.Time
	// Aggregated says that two requests told all; otherwise each group version was asked by itself.
	Aggregated bool
	// Removed are the resources that the client knew earlier and that the server has stopped serving, the latest
	// first; at most 1000.
	Removed []Removed
	// Rejected says which groups and versions the server lists under names that cannot be used; at most 100.
	Rejected []error
}

// Removed is a resource that the server no longer serves.
type Removed struct {
	Resource *Resource
	// Noticed is when the client found out.
	Noticed time.Time
}

// Group is an API group with the versions that the server serves, the preferred one first.
type Group struct {
	Name     string
	Versions []Version
}

// Version is one version of a group.
type Version struct {
	Name string
	// Resources are the resources in the server's order. Where the version is stale or could not be read they are the
	// last that were known, and may be none.
	Resources []*Resource
	// Stale says that the server itself could not reach who serves this version.
	Stale bool
	// Err is why this version's resources could not be read; nil when they were.
	Err error
}

// Healthy says that the version's resources are as the server has them now.
func (v *Version) Healthy() bool { return !v.Stale && v.Err == nil }

// Resource is one resource of a group version and all that is needed to address it.
type Resource struct {
	GVR schema.GroupVersionResource
	// GVK is the kind of its objects. Its Kind is "" where the server serves only subresources of it.
	GVK schema.GroupVersionKind
	// Singular is the name of one, in lower case, such as "deployment".
	Singular   string
	ShortNames []string
	Categories []string
	Namespaced bool
	// Verbs are the verbs of the resource itself, such as "get" and "deletecollection".
	Verbs        []string
	Subresources []Subresource
	// StorageVersionHash changes when the version in which objects are stored does; "" where the server does not
	// tell, which is with aggregated discovery.
	StorageVersionHash string
}

// Subresource is a part of a resource's objects with a path of its own, such as "status" or "scale".
type Subresource struct {
	Name string
	// GVK is the kind that it answers with, such as autoscaling/v1 Scale; empty where the server does not tell.
	GVK   schema.GroupVersionKind
	Verbs []string
}

// Supports says whether the resource itself has the verb.
func (r *Resource) Supports(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Subresource finds a subresource by its name.
func (r *Resource) Subresource(name string) (*Subresource, bool) {
	for i := range r.Subresources {
		if r.Subresources[i].Name == name {
			return &r.Subresources[i], true
		}
	}
	return nil, false
}

// Supports says whether the subresource has the verb.
func (s *Subresource) Supports(verb string) bool { return slices.Contains(s.Verbs, verb) }
