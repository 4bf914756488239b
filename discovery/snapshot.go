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
}

// Group is an API group with the versions that the server serves, the preferred one first.
type Group struct {
	Name     string
	Versions []Version
}

// Version is one version of a group.
type Version struct {
	Name string
	// Resources are the resources in the server's order; a stale or failed version may have none.
	Resources []*Resource
	// Stale says that the server itself could not reach who serves this version, and told what it last knew.
	Stale bool
	// Err is why this version's resources could not be read; nil when they were.
	Err error
}

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
