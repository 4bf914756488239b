package kinds

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/kinds/recorded"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// Resource is one served version of one resource. It is immutable and safe for concurrent use.
type Resource struct {
	Group, Version, Kind, ListKind, Plural, Singular string

	Namespaced     bool
	ShortNames     []string
	Categories     []string
	Verbs          []string               // as discovery has them
	Subresources   map[string]Subresource // by name: "status", "scale", "eviction"
	StorageVersion string                 // of the served versions, the one that is stored; "" for objects that are not stored

	// SelectableFields are the fields of field selectors besides metadata.name and metadata.namespace: paths without a leading
	// dot, such as "spec.color". Those of a built-in kind are recorded.
	SelectableFields []string
	Definition       map[string]any // the CRD; nil for a built-in kind

	storageVersionHash string
	subresourceNames   []string // in the order of discovery
	columns            []Column // of a CRD
	openapi            *openapi
	schema             func() *structural.Schema
}

// Subresource is a subresource of a Resource.
type Subresource struct {
	Name                 string
	Group, Version, Kind string // of its objects; for the scale of a deployment autoscaling, v1 and Scale
	Verbs                []string
	Scale                *ScalePaths // of a CRD's scale, else nil
}

// ScalePaths are the JSON paths of a CRD's scale subresource, such as ".spec.replicas". LabelSelector may be empty.
type ScalePaths struct {
	SpecReplicas, StatusReplicas, LabelSelector string
}

// Column is a column of a table. JSONPath is that of a CRD's printer column, without braces.
type Column struct {
	Name        string
	Type        string
	Format      string
	Description string
	Priority    int32
	JSONPath    string
}

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

// Columns returns the columns of the resource's tables: those of the CRD without the name, or the recorded ones of a
// built-in kind, which begin with it.
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
	columns := make([]Column, 0, len(all[path]))
	for _, c := range all[path] {
		columns = append(columns, Column{Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority})
	}
	return columns, nil
}

// storageVersionHash returns the hash by which discovery identifies the stored version.
func storageVersionHash(group, version, kind string) string {
	sum := sha256.Sum256([]byte(group + "/" + version + "/" + kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
