package unstructured

import (
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/anykind/anykind/internal/yamltree"
)

// positions finds lines in a document.
type positions struct {
	document document
	object   map[string]any
	root     func() *yaml.Node // nil for a document that cannot be parsed again
}

func newPositions(d document) *positions {
	return &positions{document: d, root: sync.OnceValue(func() *yaml.Node {
		documents, _, err := yamltree.Parse(d.text, 1) // JSON is YAML, too
		if err != nil || len(documents) == 0 || len(documents[0].Content) == 0 {
			return nil
		}
		return documents[0].Content[0]
	})}
}

// FieldLines returns a function that returns the line of a field of the last object in the stream, counted from 1, by a path of names
// (string) and indexes (int). For a missing field it is the line of the field around it. The function keeps the text of the document,
// parses it at its first call, and is safe for concurrent use. FieldLines returns nil before the first object.
func (d *YAMLDecoder) FieldLines() func(path ...any) int {
	at := d.positions
	if at == nil {
		return nil
	}
	item := d.item
	first := d.line
	return func(path ...any) int {
		root := at.root()
		if root == nil {
			return first
		}
		rest := item
		prefix, _ := itemPath(at.object, &rest)
		return at.document.line + lineAt(root, append(prefix, path...)) - 1
	}
}

// itemPath returns the path of an item in a list, counted as Next flattens lists.
func itemPath(m map[string]any, rest *int) (path []any, isFound bool) {
	if !isList(m) {
		*rest--
		return nil, *rest < 0
	}
	items, _ := m["items"].([]any)
	for i, v := range items {
		item, _ := v.(map[string]any)
		if path, isFound := itemPath(item, rest); isFound {
			return append([]any{"items", i}, path...), true
		}
	}
	return nil, false
}

// lineAt returns the line of a field's name or a list's item, or of the last existing node on the path.
func lineAt(node *yaml.Node, path []any) int {
	line := node.Line
	for _, step := range path {
		for node.Kind == yaml.AliasNode && node.Alias != nil {
			node = node.Alias
		}
		switch step := step.(type) {
		case string:
			i := yamltree.FieldIndex(node, step)
			if i < 0 {
				return line
			}
			line = node.Content[i].Line
			node = node.Content[i+1]
		case int:
			if node.Kind != yaml.SequenceNode || step < 0 || step >= len(node.Content) {
				return line
			}
			node = node.Content[step]
			line = node.Line
		}
	}
	return line
}
