package structural

import "github.com/anykind/anykind/apitest/internal/nested"

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
