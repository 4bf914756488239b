package unstructured

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/anykind/anykind/internal/yamltree"
)

// maxListDepth limits the nesting of lists.
const maxListDepth = 8

// listItemError is the error of a list item. indexes has the item's position in each enclosing list.
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

// isList reports whether an object of a manifest is a list. An object of a kind such as AllowList without items is not.
func isList(m map[string]any) bool {
	kind, _ := m["kind"].(string)
	_, hasItems := m["items"]
	return hasItems && strings.HasSuffix(kind, "List")
}

// appendItems appends the flattened items of a list to objs. An object of any non-list kind is appended itself. Items may come
// with an error behind them. indexes has m's position in each enclosing list.
func appendItems(objs []*Object, m map[string]any, indexes []int) ([]*Object, error) {
	if !isList(m) {
		return append(objs, &Object{Object: m}), nil
	}
	if len(indexes) == maxListDepth {
		return objs, fmt.Errorf("more than %d nested lists", maxListDepth)
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
			item["kind"] = itemKind
			item["apiVersion"] = m["apiVersion"]
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

// itemLine returns the line of a list item, or line if the item is not found.
func (d document) itemLine(indexes []int, line int) int {
	documents, _, err := yamltree.Parse(d.text, 1) // JSON is YAML, too
	if err != nil || len(documents) == 0 {
		return line
	}
	var path []any
	for _, index := range indexes {
		path = append(path, "items", index)
	}
	item := yamltree.At(documents[0].Content[0], path)
	if item.Kind == yaml.AliasNode {
		item = item.Alias
	}
	return d.line + item.Line - 1
}
