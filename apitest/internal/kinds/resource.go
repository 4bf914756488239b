package kinds

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/recorded"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// Resource is a served version of a resource. It is immutable and safe for concurrent use.
type Resource struct {
	Group, Version, Kind, ListKind, Plural, Singular string

	Namespaced     bool
	ShortNames     []string
	Categories     []string
	Verbs          []string               // as in discovery
	Subresources   map[string]Subresource // by name: "status", "scale", "eviction"
	StorageVersion string                 // the served version used for storage; "" for objects that are not stored

	// SelectableFields are the fields of field selectors besides metadata.name and metadata.namespace: paths without a leading dot,
	// such as "spec.color". For a built-in kind they are recorded.
	SelectableFields []string
	Definition       map[string]any // the CRD; nil for a built-in kind
	IsUntyped        bool           // Definition was made without knowing the schema

	storageVersionHash string
	subresourceNames   []string // in the order of discovery
	columns            []Column // of a CRD
	openapi            *openapi
	schema             func() *structural.Schema
}

// Subresource is a subresource of a Resource.
type Subresource struct {
	Name                 string
	Group, Version, Kind string // of its objects; autoscaling, v1, Scale for the scale of a deployment
	Verbs                []string
	Scale                *ScalePaths // of the scale of a CRD, else nil
}

// ScalePaths are the JSON paths of a CRD's scale subresource, such as ".spec.replicas". LabelSelector may be empty.
type ScalePaths struct {
	SpecReplicas, StatusReplicas, LabelSelector string
}

// Column is a column of a table. JSONPath is the path of a CRD's printer column, without braces.
type Column = recorded.Column

// GroupVersionKind returns the kind of the resource's objects.
func (r *Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// GroupVersionResource returns the resource's group, version and plural.
func (r *Resource) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// GroupResource returns the resource's group and plural.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// APIVersion returns the apiVersion of the resource's objects, such as "v1" or "apps/v1".
func (r *Resource) APIVersion() string {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

// HasVerb reports whether discovery lists the verb, such as "list".
func (r *Resource) HasVerb(verb string) bool {
	return slices.Contains(r.Verbs, verb)
}

// Columns returns the columns of the resource's tables: for a CRD its printer columns without the name, for a built-in kind the
// recorded columns, beginning with the name.
func (r *Resource) Columns() ([]Column, error) {
	if r.Definition != nil {
		return r.columns, nil
	}
	all, err := recorded.ReadColumns()
	if err != nil {
		return nil, err
	}
	path := "/apis/" + r.APIVersion() + "/" + r.Plural
	if r.Group == "" {
		path = "/api/v1/" + r.Plural
	}
	return slices.Clone(all[path]), nil
}

// storageVersionHash returns the hash of the storage version in discovery.
func storageVersionHash(group, version, kind string) string {
	sum := sha256.Sum256([]byte(group + "/" + version + "/" + kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
