package structural

import (
	"reflect"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// ratchet validates a value of an update. Errors are tolerated if the value equals its old value. List items have an old value
// only in lists of type map, found by key.
type ratchet struct {
	schema     *spec.Schema
	root       any
	path       string
	correlated *correlation
}

func newRatchet(schema *spec.Schema, value, old any, n *node, path string) *ratchet {
	return &ratchet{schema, nil, path, &correlation{value: value, old: old, node: n}}
}

func (r *ratchet) Validate(any) *validate.Result {
	result := newValidator(r.schema, r.root, r.path, func(options *validate.SchemaValidatorOptions) {
		options.NewValidatorForField = r.forField
		options.NewValidatorForIndex = r.forIndex
	}).Validate(r.correlated.value)
	if !result.IsValid() && r.correlated.equal() {
		return &validate.Result{}
	}
	return result
}

func (r *ratchet) SetPath(string) {}

func (r *ratchet) Applies(any, reflect.Kind) bool { return true }

func (r *ratchet) forField(name string, schema *spec.Schema, root any, path string, _ strfmt.Registry, options ...validate.Option) validate.ValueValidator {
	child := r.correlated.field(name)
	if child == nil || r.path == "" && (name == "kind" || name == "apiVersion") {
		return newValidator(schema, root, path, options...)
	}
	return &ratchet{schema, root, path, child}
}

func (r *ratchet) forIndex(index int, schema *spec.Schema, root any, path string, _ strfmt.Registry, options ...validate.Option) validate.ValueValidator {
	child := r.correlated.index(index)
	if child == nil {
		return newValidator(schema, root, path, options...)
	}
	return &ratchet{schema, root, path, child}
}

// correlation is a value and its old value.
type correlation struct {
	value, old any
	node       *node
}

func (c *correlation) field(name string) *correlation {
	value, ok1 := c.value.(map[string]any)
	old, ok2 := c.old.(map[string]any)
	child := c.node.child(name)
	if !ok1 || !ok2 || child == nil {
		return nil
	}
	newField, ok1 := value[name]
	oldField, ok2 := old[name]
	if !ok1 || !ok2 {
		return nil
	}
	return &correlation{newField, oldField, child}
}

func (c *correlation) index(i int) *correlation {
	value, ok1 := c.value.([]any)
	old, ok2 := c.old.([]any)
	if !ok1 || !ok2 || c.node.listType != "map" || i >= len(value) {
		return nil
	}
	key := c.node.key(value[i])
	if key == nil {
		return nil
	}
	for _, item := range old {
		if reflect.DeepEqual(key, c.node.key(item)) {
			return &correlation{value[i], item, c.node.items}
		}
	}
	return nil
}

// key returns the key field values of an item, or nil if the item is not an object or a key is missing or not a scalar.
func (n *node) key(item any) []any {
	fields, ok := item.(map[string]any)
	if !ok {
		return nil
	}
	key := make([]any, len(n.listMapKeys))
	for i, name := range n.listMapKeys {
		switch value := fields[name].(type) {
		case bool, float64, int64, string:
			key[i] = value
		default:
			return nil
		}
	}
	return key
}

// equal reports whether the value equals its old value. Items of a map list are compared by key.
func (c *correlation) equal() bool {
	switch value := c.value.(type) {
	case map[string]any:
		old, ok := c.old.(map[string]any)
		if !ok || len(old) != len(value) {
			return false
		}
		for name := range value {
			if child := c.field(name); child == nil || !child.equal() {
				return false
			}
		}
		return true
	case []any:
		old, ok := c.old.([]any)
		if !ok || len(old) != len(value) {
			return false
		}
		if c.node.listType != "map" {
			return reflect.DeepEqual(value, old)
		}
		for i := range value {
			if child := c.index(i); child == nil || !child.equal() {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(c.value, c.old)
}
