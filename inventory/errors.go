package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errUnavailable = errors.New("the server of this group version is unavailable")

// IncompleteError reports that some resources could not be listed. errors.Is and errors.As search the errors of all resources.
type IncompleteError struct {
	// Resources are ordered by group, version and resource.
	Resources []*ResourceError
}

// Error names the first resources.
func (e *IncompleteError) Error() string {
	const most = 3
	var texts []string
	for _, err := range e.Resources[:min(most, len(e.Resources))] {
		texts = append(texts, err.Error())
	}
	if more := len(e.Resources) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("list all resources: %d could not be listed: %s", len(e.Resources), strings.Join(texts, "; "))
}

// Incomplete returns true. A controller/manager.Manager starts its controllers with a cache that lacks only some resources.
func (e *IncompleteError) Incomplete() bool { return true }

// Unwrap returns the errors of the resources.
func (e *IncompleteError) Unwrap() []error {
	all := make([]error, len(e.Resources))
	for i, err := range e.Resources {
		all[i] = err
	}
	return all
}

func (e *IncompleteError) sort() {
	slices.SortStableFunc(e.Resources, func(a, b *ResourceError) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource))
	})
}

// ResourceError is the error of listing a resource.
type ResourceError struct {
	Group, Version string
	// Resource is "" if discovery could not read the resources of the group version.
	Resource string
	// Namespaces are the namespaces whose objects were listed nevertheless.
	Namespaces []string
	Err        error
}

// GroupResource returns the group and the resource.
func (e *ResourceError) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: e.Group, Resource: e.Resource}
}

func (e *ResourceError) Error() string {
	name := schema.GroupVersion{Group: e.Group, Version: e.Version}.String()
	if e.Resource != "" {
		name += ", " + e.Resource
	}
	if len(e.Namespaces) > 0 {
		return fmt.Sprintf("%s: %v (listed in %d namespaces)", name, e.Err, len(e.Namespaces))
	}
	return name + ": " + e.Err.Error()
}

func (e *ResourceError) Unwrap() error { return e.Err }
