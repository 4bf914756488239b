package schema

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schema is the schema of a value: of an object of a kind, a field, a list item or a map value. References between schemas are
// resolved when they are read, so a schema may contain itself, as JSONSchemaProps does. A Schema and everything in it are shared
// and read-only, and safe for concurrent use.
//
// The fields are those of OpenAPI v3 and of Kubernetes' extensions:
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema.
type Schema struct {
	Type        string // object, array, string, integer, number or boolean; empty for any type
	Format      string
	Description string
	Default     any // nil without a default
	Enum        []any
	Nullable    bool

	Required                     []string
	Pattern                      string
	MinLength, MaxLength         *int64
	Minimum, Maximum             *float64
	ExclusiveMinimum             bool
	ExclusiveMaximum             bool
	MultipleOf                   *float64
	MinItems, MaxItems           *int64
	MinProperties, MaxProperties *int64
	UniqueItems                  bool
	AllOf, AnyOf, OneOf          []*Schema
	Not                          *Schema

	IntOrString           bool
	PreserveUnknownFields bool
	EmbeddedResource      bool
	ListType              string // atomic, set or map
	ListMapKeys           []string
	MapType               string // atomic or granular
	PatchStrategy         string
	PatchMergeKey         string
	Rules                 []Rule

	// Name is the name of the schema in its document, such as io.k8s.api.core.v1.PodSpec, or empty.
	Name string
	// GroupVersionKinds are the kinds of which it is the schema.
	GroupVersionKinds []schema.GroupVersionKind
	// Unresolved is the reason for an unknown schema: a reference without a target. It is nil for a known schema.
	Unresolved error

	properties           map[string]*Schema
	items                *Schema
	additionalProperties *Schema // also nil for additionalProperties: true
	anyAdditional        bool    // additionalProperties is true or a schema

	reference *reference // nil for a schema that is no reference

	// For validation:
	pattern     *pattern  // nil without a Pattern
	defaulted   []string  // fields with a default
	deprecation string    // of the field, or empty
	kind        *kindInfo // nil for a schema that is not of a kind's objects
}

// reference refers to a schema of a document, by name.
type reference struct {
	document  *Document
	name      string
	isDirect  bool // a $ref of its own, not in the allOf of a field with a description or a default
	resolving sync.Once
	resolved  *Schema
}

// Rule is a CEL rule of x-kubernetes-validations.
type Rule struct {
	Rule              string `json:"rule"`
	Message           string `json:"message,omitempty"`
	MessageExpression string `json:"messageExpression,omitempty"`
	Reason            string `json:"reason,omitempty"`
	FieldPath         string `json:"fieldPath,omitempty"`
	OptionalOldSelf   bool   `json:"optionalOldSelf,omitempty"`
}

// Field returns the schema of an object's field, or nil without such a field.
func (s *Schema) Field(name string) *Schema { return s.properties[name].resolve() }

// Fields yields the fields of an object and their schemas, sorted by name.
func (s *Schema) Fields() iter.Seq2[string, *Schema] {
	return func(yield func(string, *Schema) bool) {
		for _, name := range slices.Sorted(maps.Keys(s.properties)) {
			if !yield(name, s.properties[name].resolve()) {
				return
			}
		}
	}
}

// Items returns the schema of a list's items, or nil.
func (s *Schema) Items() *Schema { return s.items.resolve() }

// Values returns the schema of a map's values, or nil. A map has values if it has a schema of its values or accepts any value;
// then hasValues is true.
func (s *Schema) Values() (values *Schema, hasValues bool) {
	return s.additionalProperties.resolve(), s.anyAdditional
}

// resolve returns the schema that s refers to, with the description and default of s, or s itself.
func (s *Schema) resolve() *Schema {
	if s == nil || s.reference == nil {
		return s
	}
	s.reference.resolving.Do(func() { s.reference.resolved = s.reference.document.refer(s) })
	return s.reference.resolved
}
