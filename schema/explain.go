package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxSize bounds an explanation: n schemas with references to each other have n! paths.
	maxSize = 500_000
	// maxChain bounds the references in each other.
	maxChain = 1000
)

// ExplainOptions are the options of [Client.Explain].
type ExplainOptions struct {
	// Recursive includes the fields of fields. A schema within itself is described once.
	Recursive bool
	// MaxDepth limits the levels of fields of a recursive explanation. The default, 0, is no limit.
	MaxDepth int
}

// Explanation describes the objects of a kind or one of their fields. As JSON it has everything that is known.
type Explanation struct {
	Group   string   `json:"group,omitempty"`
	Version string   `json:"version"`
	Kind    string   `json:"kind"`
	Path    []string `json:"path,omitempty"` // of the field; empty for the objects
	Field

	recursive bool
}

// Field describes a field of an [Explanation].
type Field struct {
	Name string `json:"name,omitempty"` // empty for the objects of a kind
	// Type is the type as kubectl prints it: string, PodSpec, []Container, map[string]string; Object for any other object, and
	// for a value of any type.
	Type string `json:"type"`
	// Required reports whether an object without the field is invalid.
	Required bool `json:"required,omitempty"`
	// Immutable reports whether a CEL rule requires the previous value.
	Immutable bool `json:"immutable,omitempty"`
	// Deprecated is the sentence of the description that deprecates the field or the kind, often with a replacement. For the
	// kind of a definition it is the definition's warning. Most deprecated versions of built-in kinds have none: the server
	// names them in a warning of its responses only.
	Deprecated  string `json:"deprecated,omitempty"`
	Description string `json:"description,omitempty"`
	Default     any    `json:"default,omitempty"`
	Enum        []any  `json:"enum,omitempty"`
	// Constraints are the further keywords of the schema by their names in OpenAPI, such as minimum, pattern, oneOf,
	// x-kubernetes-list-map-keys and x-kubernetes-validations (a []Rule). Keywords of a list's items begin with "items.", keywords
	// of a map's values with "additionalProperties.".
	Constraints map[string]any `json:"constraints,omitempty"`
	// Fields are the fields of an object, of the items of a list of objects, or of the values of a map of objects, sorted by
	// name. Below the first level they are known for recursive explanations only.
	Fields []*Field `json:"fields,omitempty"`
}

// Explain describes the objects of a kind, or the field at a path of names. Elements of lists and values of maps are not in the
// path: spec, containers, image. An unknown field is an [*UnknownFieldError]. Further errors are as for [Client.Kind].
func (c *Client) Explain(ctx context.Context, gvk schema.GroupVersionKind, path []string, opts *ExplainOptions) (*Explanation, error) {
	s, err := c.Kind(ctx, gvk)
	if err != nil {
		return nil, err
	}
	e := &explainer{}
	if opts != nil {
		e.ExplainOptions = *opts
	}
	explanation := &Explanation{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Path: slices.Clone(path), recursive: e.Recursive}
	var parent *Schema
	name := ""
	if len(path) > 0 {
		name = path[len(path)-1]
		if s, parent, err = s.lookup(path); err != nil {
			return nil, fmt.Errorf("explain %s: %w", kindText(gvk), err)
		}
	}
	explanation.Field = e.describe(s, parent, name)
	explanation.Description = strings.Join(e.descriptions(s, nil), "\n")
	if s.reference != nil && s.reference.isDirect { // then the schema may occur once more in itself, as in kubectl
		s = s.target()
	}
	if len(path) == 0 {
		explanation.Deprecated = s.versionDeprecation()
	}
	explanation.Fields = e.fields(s, 1, nil)
	if e.size > maxSize {
		return nil, fmt.Errorf("explain %s: %w", kindText(gvk), errTooLarge)
	}
	return explanation, nil
}

// target returns the schema behind the reference s, without the description and default of s, or s itself. A broken reference
// is an empty schema.
func (s *Schema) target() *Schema {
	if s.reference == nil {
		return s
	}
	target, err := s.reference.document.component(s.reference.name)
	if err != nil {
		return &Schema{}
	}
	return target
}

// lookup returns the unresolved schema at a path, and the schema of the object around the field.
func (s *Schema) lookup(path []string) (field, parent *Schema, err error) {
	field = s
	for _, name := range path {
		found, owner := field.named(name, map[*Schema]bool{})
		if found == nil {
			return nil, nil, &UnknownFieldError{Field: name, Suggestions: field.objectSchema(map[*Schema]bool{}).suggest(name)}
		}
		field = found
		parent = owner
	}
	return field, parent, nil
}

// named returns the field of an object, of the items of a list or of the values of a map, and the schema of the object.
func (s *Schema) named(name string, seen map[*Schema]bool) (field, owner *Schema) {
	target := s.target()
	if seen[target] || len(seen) == maxChain {
		return nil, nil
	}
	seen[target] = true
	switch {
	case target.properties[name] != nil:
		return target.properties[name], target
	case target.items != nil:
		return target.items.named(name, seen)
	case target.additionalProperties != nil:
		return target.additionalProperties.named(name, seen)
	}
	for _, part := range target.AllOf {
		if field, owner = part.named(name, seen); field != nil {
			return field, owner
		}
	}
	return nil, nil
}

// objectSchema returns the schema of an object, of the items of a list or of the values of a map.
func (s *Schema) objectSchema(seen map[*Schema]bool) *Schema {
	target := s.target()
	if seen[target] || len(seen) == maxChain {
		return target
	}
	seen[target] = true
	switch {
	case len(target.properties) > 0:
	case target.items != nil:
		return target.items.objectSchema(seen)
	case target.additionalProperties != nil:
		return target.additionalProperties.objectSchema(seen)
	case len(target.AllOf) == 1:
		return target.AllOf[0].objectSchema(seen)
	}
	return target
}

// explainer describes fields.
type explainer struct {
	ExplainOptions
	size int // of the explanation so far
}

var errTooLarge = errors.New("the schemas in each other are too many (limit the depth, or explain a field)")

// add adds the size of a schema, without the schemas in it: 1, and 1 for each 64 bytes of text. It reports whether the explanation
// is within its bound.
func (e *explainer) add(s *Schema) bool {
	text := len(s.Description) + len(s.Pattern) + 16*len(s.Enum)
	for _, rule := range s.Rules {
		text += len(rule.Rule) + len(rule.Message) + len(rule.MessageExpression)
	}
	e.size += 1 + text/64
	return e.size <= maxSize
}

// enter returns the schema behind a reference and the references around its fields. It returns nil for a schema within itself, and
// beyond the bounds.
func (e *explainer) enter(s *Schema, around *referenceChain) (*Schema, *referenceChain) {
	if !e.add(s) {
		return nil, nil
	}
	if s.reference == nil {
		return s, around
	}
	depth := 1
	for outer := around; outer != nil; outer = outer.outer {
		if outer.name == s.reference.name {
			return nil, nil
		}
		depth++
	}
	if depth > maxChain {
		e.size = maxSize + 1
		return nil, nil
	}
	return s.target(), &referenceChain{s.reference.name, around}
}

// referenceChain has the names of the schemas around a field, innermost first.
type referenceChain struct {
	name  string
	outer *referenceChain
}

// fields describes the fields of an object, of a list's items or of a map's values.
func (e *explainer) fields(s *Schema, level int, around *referenceChain) []*Field {
	if s, around = e.enter(s, around); s == nil {
		return nil
	}
	var all []*Field
	for _, name := range slices.Sorted(maps.Keys(s.properties)) {
		field := e.describe(s.properties[name], s, name)
		if e.Recursive && (e.MaxDepth == 0 || level < e.MaxDepth) {
			field.Fields = e.fields(s.properties[name], level+1, around)
		}
		all = append(all, &field)
		if e.size > maxSize {
			return nil
		}
	}
	for _, part := range slices.Concat(s.AllOf, []*Schema{s.items, s.additionalProperties}) {
		if part != nil {
			all = append(all, e.fields(part, level, around)...)
		}
	}
	return all
}

// describe describes a field without its fields. s is unresolved.
func (e *explainer) describe(s, parent *Schema, name string) Field {
	e.add(s)
	resolved := s.resolve()
	field := Field{Name: name, Type: typeName(s), Description: s.Description, Enum: s.Enum, Deprecated: resolved.deprecation}
	field.Constraints = e.constraints(resolved, 0)
	field.Immutable = resolved.hasRule("self==oldSelf", "oldSelf==self")
	if parent != nil {
		field.Required = slices.Contains(parent.Required, name)
		field.Immutable = field.Immutable || parent.hasRule("self."+name+"==oldSelf."+name, "oldSelf."+name+"==self."+name)
	}
	// Servers publish a zero default for required fields and structs of built-in kinds. Nothing sets them.
	if !isZero(resolved.Default) || !field.Required && s.reference == nil {
		field.Default = resolved.Default
	}
	return field
}

// isZero reports whether a default is an empty string or object, or 0.
func isZero(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case int64:
		return value == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}

// hasRule reports whether s has one of the rules. The rules are written without spaces.
func (s *Schema) hasRule(rules ...string) bool {
	return slices.ContainsFunc(s.Rules, func(rule Rule) bool {
		return slices.Contains(rules, strings.Join(strings.Fields(rule.Rule), ""))
	})
}

// typeName returns the type of an unresolved schema as kubectl prints it.
func typeName(s *Schema) string {
	switch {
	case s.items != nil:
		return "[]" + typeName(s.items)
	case s.additionalProperties != nil:
		return "map[string]" + typeName(s.additionalProperties)
	case len(s.AllOf) == 1 && len(s.properties) == 0:
		return typeName(s.AllOf[0])
	}
	name := s.Name
	if s.reference != nil {
		name = s.reference.name
		s = s.target()
	}
	if s.Type != "" && s.Type != "object" {
		return s.Type
	}
	if last := name[strings.LastIndexByte(name, '.')+1:]; last != "" {
		return last
	}
	return "Object"
}

// descriptions returns the descriptions of a field, of its reference's target, of a list's items and of a map's values.
func (e *explainer) descriptions(s *Schema, around *referenceChain) []string {
	var all []string
	if s.reference != nil && !s.reference.isDirect && s.Description != "" {
		all = append(all, s.Description)
	}
	if s, around = e.enter(s, around); s == nil {
		return all
	}
	if s.Description != "" {
		all = append(all, s.Description)
	}
	for _, part := range slices.Concat(s.AllOf, []*Schema{s.items, s.additionalProperties}) {
		if part != nil {
			all = append(all, e.descriptions(part, around)...)
		}
	}
	return all
}
