package schema

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
)

// maxReferences bounds the references that lead to references, in a row.
const maxReferences = 16

const referencePrefix = "#/components/schemas/"

// Document is the OpenAPI v3 document of a group version: the schemas of its kinds. A schema is decoded when it is first read.
// Documents are safe for concurrent use.
type Document struct {
	raw        []byte
	components map[string]*component
	kinds      map[schema.GroupVersionKind]string // names of components
	statuses   map[schema.GroupVersionKind]bool   // kinds with a status subresource
}

// component is a schema of a document, by name.
type component struct {
	raw      []byte
	decoding sync.Once
	schema   *Schema
	err      error
}

// ParseDocument reads an OpenAPI v3 document. It validates that data is JSON and finds the kinds, and keeps data, which must not
// change.
func ParseDocument(data []byte) (*Document, error) {
	d := &Document{raw: data, components: map[string]*component{}, kinds: map[schema.GroupVersionKind]string{}, statuses: map[schema.GroupVersionKind]bool{}}
	r := jsonread.Borrow(data)
	defer r.Release()
	err := eachMember(r, "the document", func(name string) error {
		if name == "paths" {
			return d.addPaths(r)
		}
		if name != "components" {
			_, _, err := r.Skip()
			return err
		}
		return eachMember(r, name, func(name string) error {
			if name != "schemas" {
				_, _, err := r.Skip()
				return err
			}
			return eachMember(r, name, func(name string) error { return d.add(r, name, data) })
		})
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return nil, fmt.Errorf("parse OpenAPI document: %w", err)
	}
	return d, nil
}

// add adds the schema at the reader as a component.
func (d *Document) add(r *jsonread.Reader, name string, data []byte) error {
	c := &component{}
	kinds, err := kindsOf(r, func(start, end int64) { c.raw = data[start:end] })
	if err != nil {
		return fmt.Errorf("components.schemas.%s: %w", name, err)
	}
	d.components[name] = c
	for _, gvk := range kinds {
		if other, taken := d.kinds[gvk]; !taken || name < other {
			d.kinds[gvk] = name
		}
	}
	return nil
}

// kindsOf reads a schema of which it decodes the kinds only, and passes its range.
func kindsOf(r *jsonread.Reader, setRange func(start, end int64)) ([]schema.GroupVersionKind, error) {
	if _, err := r.Peek(); err != nil {
		return nil, err
	}
	start := r.Offset()
	var kinds []schema.GroupVersionKind
	err := eachMember(r, "a schema", func(name string) error {
		if name != "x-kubernetes-group-version-kind" {
			_, _, err := r.Skip()
			return err
		}
		value, err := r.Value()
		kinds = groupVersionKinds(value)
		return err
	})
	setRange(start, r.Offset())
	return kinds, err
}

// Kind returns the schema of a kind's objects, or nil if the document has no such kind.
func (d *Document) Kind(gvk schema.GroupVersionKind) (*Schema, error) {
	name, found := d.kinds[gvk]
	if !found {
		return nil, nil
	}
	return d.component(name)
}

// Kinds yields the document's kinds, sorted by their text form. Kinds without a resource are among them, such as those of lists
// and options.
func (d *Document) Kinds() iter.Seq[schema.GroupVersionKind] {
	return slices.Values(slices.SortedFunc(maps.Keys(d.kinds), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	}))
}

func (d *Document) component(name string) (*Schema, error) {
	c, found := d.components[name]
	if !found {
		return nil, fmt.Errorf("no schema %q in the document", name)
	}
	c.decoding.Do(func() {
		c.schema, c.err = decodeSchema(d, c.raw)
		if c.err != nil {
			c.err = fmt.Errorf("schema %q: %w", name, c.err)
			return
		}
		if c.schema.Name == "" {
			c.schema.Name = name
		}
		c.schema.setKind(d, c.raw)
	})
	return c.schema, c.err
}

// refer returns the schema that s refers to, with the description and default of s.
func (d *Document) refer(s *Schema) *Schema {
	target := s
	for range maxReferences {
		var err error
		if target, err = d.component(target.reference.name); err != nil {
			return &Schema{Description: s.Description, Unresolved: err}
		}
		if target.reference == nil {
			return target.withOverrides(s)
		}
	}
	return &Schema{Description: s.Description, Unresolved: fmt.Errorf("schema %q: more than %d references in a row", s.reference.name, maxReferences)}
}

// withOverrides returns s with the description, default, nullability and list type of a reference to s.
func (s *Schema) withOverrides(reference *Schema) *Schema {
	if reference.isPlainReference() {
		return s
	}
	merged := *s
	if reference.Description != "" {
		merged.Description = reference.Description
		merged.deprecation = reference.deprecation
	}
	if reference.Default != nil {
		merged.Default = reference.Default
	}
	merged.Nullable = s.Nullable || reference.Nullable
	merged.EmbeddedResource = s.EmbeddedResource || reference.EmbeddedResource
	if len(reference.Rules) > 0 {
		merged.Rules = slices.Concat(s.Rules, reference.Rules)
	}
	if reference.MapType != "" {
		merged.MapType = reference.MapType
	}
	if reference.PatchStrategy != "" {
		merged.PatchStrategy = reference.PatchStrategy
	}
	return &merged
}

func (s *Schema) isPlainReference() bool {
	return s.Description == "" && s.Default == nil && !s.Nullable && !s.EmbeddedResource && len(s.Rules) == 0 && s.MapType == "" && s.PatchStrategy == ""
}
