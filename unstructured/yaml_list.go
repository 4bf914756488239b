package unstructured

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxListDepth is how many lists of a manifest are in each other.
const maxListDepth = 8

// listItemError is the error of an item of a list, which is at these indexes of the lists around it.
type listItemError struct {
	indexes []int
	cause   error
}

func (e *listItemError) Error() string {
	var b strings.Builder
	for i, index := range e.indexes {
		if i > 0 {
			b.WriteByte('.')
		}
		fmt.Fprintf(&b, "items[%d]", index)
	}
	return b.String() + ": " + e.cause.Error()
}

func (e *listItemError) Unwrap() error { return e.cause }

// isList reports whether an object of a manifest is a list. An object of a kind such as AllowList without items is none.
func isList(m map[string]any) bool {
	kind, _ := m["kind"].(string)
	_, hasItems := m["items"]
	return hasItems && strings.HasSuffix(kind, "List")
}

// appendItems appends the items of a list to objs, and of lists among them theirs, and of another object the object. Items
// may come with the error behind them. indexes are where m is among the items of the outer lists.
func appendItems(objs []*Object, m map[string]any, indexes []int) ([]*Object, error) {
	if !isList(m) {
		return append(objs, &Object{Object: m}), nil
	}
	if len(indexes) == maxListDepth {
		return objs, fmt.Errorf("more than %d lists in each other", maxListDepth)
	}
	items, isArray := m["items"].([]any)
	if !isArray && m["items"] != nil {
		return objs, fmt.Errorf("the list's items are %s, not []any", typeName(m["items"]))
	}
	kind, _ := m["kind"].(string)
	itemKind := strings.TrimSuffix(kind, "List")
	for i, v := range items {
		at := append(indexes[:len(indexes):len(indexes)], i)
		item, isObject := v.(map[string]any)
		if !isObject {
			return objs, &listItemError{at, fmt.Errorf("is %s, not an object", typeName(v))}
		}
		if item["kind"] == nil && item["apiVersion"] == nil && itemKind != "" {
			item["kind"], item["apiVersion"] = itemKind, m["apiVersion"]
		}
		err := checkType(item)
		if err == nil {
			objs, err = appendItems(objs, item, at)
		}
		if _, hasIndexes := errors.AsType[*listItemError](err); err != nil && !hasIndexes {
			err = &listItemError{at, err}
		}
		if err != nil {
			return objs, err
		}
	}
	return objs, nil
}

// itemLine returns the line of an item of the document's list, or line if it is not found.
func (d document) itemLine(indexes []int, line int) (itemLine int) {
	defer func() {
		if recover() != nil { // as in readYAML
			itemLine = line
		}
	}()
	root, _, err := parseTree(d.text) // JSON is YAML, too
	if err != nil {
		return line
	}
	for _, index := range indexes {
		items := memberNode(root, "items")
		if items == nil || items.Kind != yaml.SequenceNode || index >= len(items.Content) {
			break
		}
		if root = items.Content[index]; root.Kind == yaml.AliasNode {
			root = root.Alias
		}
		line = d.line + root.Line - 1
	}
	return line
}

// memberNode returns the value of a field of a map, nil if it is not found.
func memberNode(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			if value := n.Content[i+1]; value.Kind != yaml.AliasNode {
				return value
			}
			return n.Content[i+1].Alias
		}
	}
	return nil
}
