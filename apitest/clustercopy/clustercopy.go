// Package clustercopy copies the objects of a cluster as they are, saves them to a file and reads them again. Package apitest
// serves a copy:
//
//	c, err := clustercopy.From(ctx, client, nil)
//	…
//	err = c.Save(file)
//	…
//	c, err = clustercopy.Load(file)
//	…
//	server, err := apitest.Start(&apitest.Options{Copy: c}) // or apitest.NewServer(t, …)
//
// Objects keep their status and all of their metadata: uid, resourceVersion, timestamps, managedFields, owners, finalizers.
// Package apitest continues with the next resourceVersion. [Copy.Omitted] names missing objects and fields.
//
// Objects stay JSON. A copy takes about the memory of the cluster's responses.
package clustercopy

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/unstructured"
)

// Copy has the objects of a cluster and the facts of its API server. [From], [Load] and [Of] return it.
type Copy struct {
	// Version is the version of the cluster's API server. Its GitVersion is "" if the copy is not from a cluster.
	Version version.Info
	// TakenAt is the time at which From began.
	TakenAt time.Time
	// ResourceVersion is the revision of the lists, or "" if the cluster did not report one. [Resource.ResourceVersion] is the revision
	// of a single list.
	ResourceVersion string
	// Resources are the copied resources. Objects of From are in their order.
	Resources []Resource
	// Omitted are missing and incomplete objects, with the reasons.
	Omitted []Omission
	// Objects are the copied objects.
	Objects []*unstructured.Lazy
}

// Resource is a copied resource of the cluster.
type Resource struct {
	Group        string   `json:"group,omitempty"`
	Version      string   `json:"version"`
	Plural       string   `json:"plural"`
	Singular     string   `json:"singular,omitempty"`
	Kind         string   `json:"kind"`
	ShortNames   []string `json:"shortNames,omitempty"`
	Categories   []string `json:"categories,omitempty"`
	Namespaced   bool     `json:"namespaced,omitempty"`
	Subresources []string `json:"subresources,omitempty"` // such as "status"
	// IsAggregated reports whether an aggregated API server serves the resource, with resourceVersions of its own.
	IsAggregated bool `json:"isAggregated,omitempty"`
	// ResourceVersion is the revision of the list, or "" for lists of several namespaces at different revisions. It differs from the
	// copy's ResourceVersion if the server could not list at the copy's revision.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// GroupVersionKind returns the kind of the resource's objects.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// Omission describes objects or fields missing in a copy.
type Omission struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	// Resource is the plural, "" for all resources of a group version.
	Resource string `json:"resource,omitempty"`
	// Namespace is "" for all namespaces and for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Reason is a text, such as the server's error.
	Reason string `json:"reason"`
	// ByDefault reports whether the objects are left out unless Options name them.
	ByDefault bool `json:"byDefault,omitempty"`
}

// String returns a line of text.
func (o Omission) String() string {
	name := schema.GroupVersion{Group: o.Group, Version: o.Version}.String()
	if o.Resource != "" {
		name = schema.GroupResource{Group: o.Group, Resource: o.Resource}.String()
	}
	if o.Namespace != "" {
		name += " in namespace " + o.Namespace
	}
	return name + ": " + o.Reason
}

// Of returns a copy with objects, such as the output of kubectl get -o yaml. Package apitest sets the defaults and a missing UID of
// objects without a resourceVersion: they were never stored.
func Of(objects ...*unstructured.Object) (*Copy, error) {
	c := &Copy{}
	for _, obj := range objects {
		lazy, err := lazyOf(obj)
		if err != nil {
			return nil, fmt.Errorf("copy %s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
		c.Objects = append(c.Objects, lazy)
	}
	return c, nil
}

func lazyOf(obj *unstructured.Object) (*unstructured.Lazy, error) {
	data, err := unstructured.Encode(obj)
	if err != nil {
		return nil, err
	}
	return unstructured.DecodeLazy(data)
}
