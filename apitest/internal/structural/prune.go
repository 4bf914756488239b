package structural

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Prune prunes a custom resource like the API server's decoder. It removes unknown fields, nulls in fields that are not nullable,
// and unknown fields of metadata, also in embedded resources. It returns the paths of the unknown fields, such as "spec.x", in
// the server's order, and an error if metadata is malformed.
func (s *Schema) Prune(obj map[string]any) (unknown []string, err error) {
	metadata, found, unknown, err := coerceMetadata(obj, nil)
	if err != nil {
		return nil, err
	}
	root := *s.root
	root.embedded = true
	p := &pruner{}
	p.prune(obj, &root, "")
	slices.Sort(p.unknown)
	unknown = append(unknown, p.unknown...)
	removeNulls(obj, s.root)
	c := &coercer{}
	if err := c.coerce(nil, obj, s.root); err != nil {
		return nil, err
	}
	slices.Sort(c.unknown)
	if found {
		obj["metadata"] = metadata
	}
	return append(unknown, c.unknown...), nil
}

// PruneStored prunes a stored custom resource like the API server does on reads. Unlike Prune, it also removes malformed metadata
// of embedded resources, and leaves the object's own metadata to the caller. Applied objects are stored unpruned, so unknown fields
// are not reported.
func (s *Schema) PruneStored(obj map[string]any) {
	root := *s.root
	root.embedded = true
	(&pruner{isQuiet: true}).prune(obj, &root, "")
	removeNulls(obj, s.root)
	if s.hasEmbedded {
		_ = (&coercer{dropsMalformed: true}).coerce(nil, obj, s.root)
	}
}

// pruner removes fields not described by a schema.
type pruner struct {
	isQuiet bool // does not collect paths
	unknown []string
}

func isMetaField(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

func (p *pruner) prune(value any, n *node, path string) {
	switch value := value.(type) {
	case map[string]any:
		preserve := n != nil && n.preserveUnknown
		for name, child := range value {
			if n != nil && n.embedded && isMetaField(name) {
				continue
			}
			switch property := n.child(name); {
			case n != nil && (property != nil || n.hasAdditional):
				p.prune(child, property, p.join(path, name))
			case !preserve:
				if !p.isQuiet && (!isMetaField(name) || path != "") {
					p.unknown = append(p.unknown, p.join(path, name))
				}
				delete(value, name)
			}
		}
	case []any:
		preserve := n != nil && n.preserveUnknown
		var items *node
		if n != nil {
			items = n.items
		}
		for i, child := range value {
			at := ""
			if !p.isQuiet {
				at = path + "[" + strconv.Itoa(i) + "]"
			}
			switch {
			case !preserve:
				p.prune(child, items, at)
			case items != nil: // x-kubernetes-preserve-unknown-fields of a list applies to its items
				preserved := *items
				preserved.preserveUnknown = true
				p.prune(child, &preserved, at)
			}
		}
	}
}

func (p *pruner) join(path, name string) string {
	if path == "" || p.isQuiet {
		return name
	}
	return path + "." + name
}

// removeNulls removes nulls from fields that are not nullable and have no default.
func removeNulls(value any, n *node) {
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			property := n.child(name)
			if child == nil && property != nil && !property.nullable && property.defaultValue == nil {
				delete(value, name)
			} else {
				removeNulls(child, property)
			}
		}
	case []any:
		var items *node
		if n != nil {
			items = n.items
		}
		for _, child := range value {
			removeNulls(child, items)
		}
	}
}

// coercer converts the metadata of embedded resources to its decoded form.
type coercer struct {
	dropsMalformed bool // removes malformed fields instead of returning an error
	unknown        []string
}

func (c *coercer) coerce(path *field.Path, value any, n *node) error {
	if n == nil {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		if n.embedded {
			if err := c.embedded(path, value); err != nil {
				return err
			}
		}
		for name, child := range value {
			var err error
			if property, ok := n.properties[name]; ok {
				err = c.coerce(path.Child(name), child, property)
			} else if n.additional != nil {
				err = c.coerce(path.Key(name), child, n.additional)
			}
			if err != nil {
				return err
			}
		}
	case []any:
		for i, child := range value {
			if err := c.coerce(path.Index(i), child, n.items); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *coercer) embedded(path *field.Path, value map[string]any) error {
	for _, name := range []string{"apiVersion", "kind"} {
		if v, ok := value[name]; ok {
			if _, ok := v.(string); !ok && c.dropsMalformed {
				delete(value, name)
			} else if !ok {
				return field.Invalid(path.Child(name), v, "must be a string")
			}
		}
	}
	metadata, found, unknown, err := coerceMetadata(value, path)
	if fields, isMap := value["metadata"].(map[string]any); err != nil && c.dropsMalformed && isMap {
		dropMalformed(fields)
		metadata, found, unknown, err = coerceMetadata(value, path)
	}
	if err != nil && !c.dropsMalformed {
		return field.Invalid(path.Child("metadata"), value["metadata"], err.Error())
	}
	c.unknown = append(c.unknown, unknown...)
	if err == nil && found {
		value["metadata"] = metadata
	}
	return nil
}

// dropMalformed removes undecodable fields of metadata.
func dropMalformed(metadata map[string]any) {
	for name, value := range metadata {
		content, err := json.Marshal(map[string]any{name: value})
		if err != nil || json.Unmarshal(content, &metav1.ObjectMeta{}) != nil {
			delete(metadata, name)
		}
	}
}

// coerceMetadata decodes an object's metadata into Go types and encodes it again.
func coerceMetadata(obj map[string]any, path *field.Path) (metadata map[string]any, found bool, unknown []string, err error) {
	value, found := obj["metadata"]
	if !found {
		return nil, false, nil, nil
	}
	content, err := json.Marshal(value)
	if err != nil {
		return nil, true, nil, fmt.Errorf("encode metadata: %w", err)
	}
	var typed metav1.ObjectMeta
	strict, err := kjson.UnmarshalStrict(content, &typed)
	if err != nil {
		return nil, true, nil, err
	}
	for _, err := range strict {
		var unknownField kjson.FieldError
		if errors.As(err, &unknownField) {
			unknown = append(unknown, path.Child("metadata").String()+"."+unknownField.FieldPath())
		}
	}
	if metadata, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&typed); err != nil {
		return nil, true, nil, fmt.Errorf("encode metadata: %w", err)
	}
	if typed.CreationTimestamp.IsZero() {
		delete(metadata, "creationTimestamp")
	}
	return metadata, true, unknown, nil
}
