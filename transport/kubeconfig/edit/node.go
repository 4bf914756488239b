package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	ky "sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/yamltree"
)

// setField sets a mapping's field in its place, or appends it. The field's comments stay.
func setField(mapping *yaml.Node, name string, value *yaml.Node) {
	if i := yamltree.FieldIndex(mapping, name); i >= 0 {
		old := mapping.Content[i+1]
		value.HeadComment = old.HeadComment
		value.LineComment = old.LineComment
		value.FootComment = old.FootComment
		mapping.Content[i+1] = value
		return
	}
	mapping.Content = append(mapping.Content, stringNode(name, isFlow(mapping)), value)
}

func removeField(mapping *yaml.Node, name string) {
	if i := yamltree.FieldIndex(mapping, name); i >= 0 {
		mapping.Content = slices.Delete(mapping.Content, i, i+2)
	}
}

// child returns the mapping or list in a field, and creates it if the field is missing or null.
func child(mapping *yaml.Node, name string, kind yaml.Kind) *yaml.Node {
	if found := yamltree.Field(mapping, name); found != nil && found.Kind == kind {
		return found
	}
	created := collection(kind, isFlow(mapping))
	setField(mapping, name, created)
	return created
}

// childNamed returns the entry with the name in a mapping's list, and creates a missing entry.
func childNamed(mapping *yaml.Node, listName, name string) *yaml.Node {
	list := child(mapping, listName, yaml.SequenceNode)
	if entry := entryNamed(list, name); entry != nil {
		return entry
	}
	if len(list.Content) == 0 { // it may be written as []
		list.Style = mapping.Style & yaml.FlowStyle
	}
	entry := collection(yaml.MappingNode, isFlow(list))
	setField(entry, "name", stringNode(name, isFlow(list)))
	list.Content = append(list.Content, entry)
	return entry
}

// entryNamed returns the list entry with the name, or nil.
func entryNamed(list *yaml.Node, name string) *yaml.Node {
	for _, entry := range list.Content {
		if entry.Kind != yaml.MappingNode {
			continue
		}
		if found := yamltree.Field(entry, "name"); found != nil && found.Value == name || found == nil && name == "" {
			return entry
		}
	}
	return nil
}

func isFlow(node *yaml.Node) bool { return node.Style&yaml.FlowStyle != 0 }

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

func nullNode() *yaml.Node { return scalar("!!null", "null") }

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// collection returns an empty mapping or list.
func collection(kind yaml.Kind, flow bool) *yaml.Node {
	node := &yaml.Node{Kind: kind, Tag: "!!map"}
	if kind == yaml.SequenceNode {
		node.Tag = "!!seq"
	}
	if flow {
		node.Style = yaml.FlowStyle
	}
	return node
}

// stringNode returns a node for a string. Values such as "yes" are quoted, because kubectl reads YAML 1.1. In flow style the
// string is JSON.
func stringNode(value string, flow bool) *yaml.Node {
	node := scalar("!!str", value)
	plain, err := ky.Marshal(value)
	if flow || err != nil || bytes.HasPrefix(plain, []byte(`"`)) || bytes.HasPrefix(plain, []byte(`'`)) || strings.ContainsAny(value, "\n\r\t") {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// parseJSON returns the tree of a valid JSON value, with its fields in their order. Empty raw is null.
func parseJSON(raw json.RawMessage, flow bool) *yaml.Node {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return parseNext(decoder, flow)
}

func parseNext(decoder *json.Decoder, flow bool) *yaml.Node {
	token, _ := decoder.Token() // nil for null and at the end
	switch token := token.(type) {
	case json.Delim:
		node := collection(yaml.MappingNode, flow)
		if token == '[' {
			node = collection(yaml.SequenceNode, flow)
		}
		for decoder.More() { // field names are values, too
			node.Content = append(node.Content, parseNext(decoder, flow))
		}
		_, _ = decoder.Token() // the closing bracket
		return node
	case string:
		return stringNode(token, flow)
	case json.Number:
		if strings.ContainsAny(token.String(), ".eE") {
			return scalar("!!float", token.String())
		}
		return scalar("!!int", token.String())
	case bool:
		return scalar("!!bool", fmt.Sprint(token))
	default:
		return nullNode()
	}
}

// writeJSON encodes the tree of a JSON document as JSON: the escapes of YAML differ.
func writeJSON(out *bytes.Buffer, node *yaml.Node) {
	switch node.Kind {
	case yaml.DocumentNode:
		writeJSON(out, node.Content[0])
	case yaml.MappingNode:
		writeJSONCollection(out, node, "{:,}")
	case yaml.SequenceNode:
		writeJSONCollection(out, node, "[,,]")
	default:
		if node.ShortTag() != "!!str" {
			out.WriteString(node.Value) // a number, a bool or null, as written
			return
		}
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(node.Value) // cannot fail for a string
		out.Truncate(out.Len() - 1)    // the encoder's line break
	}
}

// writeJSONCollection encodes a mapping or a list. marks are the opening bracket, the separators behind values with an even and
// an odd index, and the closing bracket.
func writeJSONCollection(out *bytes.Buffer, node *yaml.Node, marks string) {
	out.WriteByte(marks[0])
	for i, value := range node.Content {
		if i > 0 {
			out.WriteByte(marks[2-i%2])
		}
		writeJSON(out, value)
	}
	out.WriteByte(marks[3])
}

// expand replaces each alias by a copy of its anchor's value, and each merge key by the merged fields.
func expand(node *yaml.Node) {
	for i, value := range node.Content {
		if value.Kind == yaml.AliasNode {
			node.Content[i] = clone(value.Alias)
		}
		expand(node.Content[i])
	}
	node.Anchor = ""
	if node.Kind == yaml.MappingNode {
		expandMergeKeys(node)
	}
}

// expandMergeKeys replaces "<<" by the merged fields. As in kubectl's YAML library, merged fields are placed at their merge key.
// The last field of a name wins; the first of several mappings in a "<<" wins.
func expandMergeKeys(mapping *yaml.Node) {
	content := mapping.Content
	mapping.Content = make([]*yaml.Node, 0, len(content))
	set := func(key, value *yaml.Node) {
		if i := yamltree.FieldIndex(mapping, key.Value); i >= 0 {
			mapping.Content[i+1] = value
			return
		}
		mapping.Content = append(mapping.Content, key, value)
	}
	for i := 0; i+1 < len(content); i += 2 {
		key := content[i]
		value := content[i+1]
		if key.ShortTag() != "!!merge" {
			set(key, value)
			continue
		}
		merged := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			merged = value.Content
		}
		for _, from := range slices.Backward(merged) {
			for j := 0; j+1 < len(from.Content); j += 2 {
				set(from.Content[j], from.Content[j+1])
			}
		}
	}
}

func clone(node *yaml.Node) *yaml.Node {
	copied := *node
	copied.Content = make([]*yaml.Node, len(node.Content))
	for i, value := range node.Content {
		copied.Content[i] = clone(value)
	}
	return &copied
}
