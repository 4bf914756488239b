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
// A copy has the objects with all of their metadata: uid, resourceVersion, timestamps, managedFields, owners, finalizers, and
// their status. Package apitest continues with the next resourceVersion. What a copy lacks is in [Copy.Omitted].
//
// Objects are kept as JSON, so that a copy takes about the memory of the cluster's responses.
package clustercopy

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/unstructured"
)

// Copy has the objects of a cluster and the facts of its API server. [From], [Load] and [Of] return one.
type Copy struct {
	// Version is the version of the cluster's API server. Its GitVersion is "" if the copy is not from a cluster.
	Version version.Info
	// TakenAt is the time at which From began.
	TakenAt time.Time
	// ResourceVersion is the revision of the cluster at which lists were made, "" if the cluster did not report one.
	// [Resource.ResourceVersion] is that of a single list.
	ResourceVersion string
	// Resources are the copied resources. Objects of From are in their order.
	Resources []Resource
	// Omitted are the objects that the copy lacks or has in part, and the reasons.
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
	// IsAggregated reports whether an aggregated API server serves the resource. The resourceVersions of its objects are not
	// comparable with those of other objects.
	IsAggregated bool `json:"isAggregated,omitempty"`
	// ResourceVersion is that of the list, "" for lists of several namespaces that differ. It differs from the copy's ResourceVersion
	// if the server could not list at that revision.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// GroupVersionKind returns the kind of the resource's objects.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// Omission describes objects, or fields of objects, that a copy lacks.
type Omission struct {
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
	// Resource is the plural, "" for all resources of a group version.
	Resource string `json:"resource,omitempty"`
	// Namespace is "" for all namespaces and for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Reason is a text, such as the server's error.
	Reason string `json:"reason"`
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

// Of returns a copy of objects, such as those of an export by kubectl get -o yaml. Objects without a resourceVersion were never
// stored: apitest sets their defaults and a missing UID.
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
