// Package structural prunes, defaults and validates custom resources by their structural schemas, like the API server.
//
// Built-in kinds have no structural schema. The API server decodes them into Go types; see package builtin.
package structural

import (
	"regexp"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// Schema is a structural schema. It is immutable and safe for concurrent use.
type Schema struct {
	root    *node
	openapi *spec.Schema
	status  *spec.Schema // of the field status, or nil

	hasEmbedded bool // has embedded resources below the root
	hasRules    bool
	rules       func() (Rules, error) // compiled at first use; nil without a RuleCompiler
}

// Compile returns the schema of an openAPIV3Schema. The schema must be structural; see ValidateDefinition. With nil rules, CEL
// rules are not evaluated.
func Compile(openAPIV3 map[string]any, rules RuleCompiler) *Schema {
	openapi := toOpenAPI(openAPIV3)
	s := &Schema{root: newNode(openAPIV3), openapi: openapi}
	s.root.embedded = false // the caller checks the root's metadata
	s.hasEmbedded = s.root.anyEmbedded()
	s.hasRules = s.root.anyRule()
	if rules != nil {
		s.rules = sync.OnceValues(func() (Rules, error) { return rules.Compile(openAPIV3) })
	}
	if status, ok := openapi.Properties["status"]; ok {
		s.status = &status
	}
	return s
}

// Default sets the schema's defaults.
func (s *Schema) Default(obj map[string]any) { s.root.setDefaults(obj) }

// node is a level of a structural schema, reduced to the fields needed for pruning, defaulting, list types and embedded
// resources.
type node struct {
	typ               string
	nullable          bool
	preserveUnknown   bool
	embedded          bool
	properties        map[string]*node
	additional        *node // also nil for additionalProperties: true
	hasAdditional     bool
	items             *node
	defaultValue      any // nil without a default
	listType, mapType string
	listMapKeys       []string
	rules             bool
}

func newNode(schema map[string]any) *node {
	n := &node{
		typ:             nested.String(schema, "type"),
		nullable:        nested.Bool(schema, "nullable"),
		preserveUnknown: nested.Bool(schema, "x-kubernetes-preserve-unknown-fields"),
		embedded:        nested.Bool(schema, "x-kubernetes-embedded-resource"),
		defaultValue:    schema["default"],
		listType:        nested.String(schema, "x-kubernetes-list-type"),
		mapType:         nested.String(schema, "x-kubernetes-map-type"),
	}
	n.listMapKeys = nested.Strings(schema, "x-kubernetes-list-map-keys")
	n.rules = len(nested.Slice(schema, "x-kubernetes-validations")) > 0
	if properties := nested.Map(schema, "properties"); len(properties) > 0 {
		n.properties = make(map[string]*node, len(properties))
		for name, property := range properties {
			property, _ := property.(map[string]any)
			n.properties[name] = newNode(property)
		}
	}
	switch additional := schema["additionalProperties"].(type) {
	case bool:
		n.hasAdditional = additional
	case map[string]any:
		n.hasAdditional = true
		n.additional = newNode(additional)
	}
	if items := nested.Map(schema, "items"); items != nil {
		n.items = newNode(items)
	}
	return n
}

// pathStep is a field of a path such as .spec['a b'].
var pathStep = regexp.MustCompile(`^(?:\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\])`)

// atPath returns the node of a field, nil if the schema does not describe the field or the path is malformed.
func (n *node) atPath(path string) *node {
	for path != "" && n != nil {
		step := pathStep.FindStringSubmatch(path)
		switch {
		case step == nil:
			return nil
		case n.hasAdditional && n.additional == nil && len(n.properties) == 0:
			return &node{} // of any type
		}
		n = n.child(step[1] + step[2])
		path = path[len(step[0]):]
	}
	return n
}

// child returns the node of a field, nil if the schema does not describe the field.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	if property, ok := n.properties[name]; ok {
		return property
	}
	return n.additional
}

func (n *node) anyRule() bool { return n.any(func(n *node) bool { return n.rules }) }

func (n *node) anyEmbedded() bool { return n.any(func(n *node) bool { return n.embedded }) }

// any reports whether the condition holds for the node or a descendant.
func (n *node) any(condition func(*node) bool) bool {
	if n == nil {
		return false
	}
	if condition(n) || n.additional.any(condition) || n.items.any(condition) {
		return true
	}
	for _, property := range n.properties {
		if property.any(condition) {
			return true
		}
	}
	return false
}

// setDefaults sets defaults below value. A null in a field that is not nullable counts as absent.
func (n *node) setDefaults(value any) {
	if n == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, property := range n.properties {
			if property.defaultValue == nil {
				continue
			}
			if current, found := value[name]; !found || current == nil && !property.nullable {
				value[name] = runtime.DeepCopyJSONValue(property.defaultValue)
			}
		}
		for name, child := range value {
			if property, ok := n.properties[name]; ok {
				property.setDefaults(child)
			} else if n.additional != nil {
				value[name] = n.additional.orDefault(child)
				n.additional.setDefaults(value[name])
			}
		}
	case []any:
		for i, child := range value {
			if n.items != nil {
				value[i] = n.items.orDefault(child)
				n.items.setDefaults(value[i])
			}
		}
	}
}

func (n *node) orDefault(value any) any {
	if value == nil && !n.nullable {
		return runtime.DeepCopyJSONValue(n.defaultValue)
	}
	return value
}
