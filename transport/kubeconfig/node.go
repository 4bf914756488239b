package kubeconfig

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	ky "sigs.k8s.io/yaml"
)

// setField sets a mapping's field in its place, or appends it. Comments at the field stay.
func setField(mapping *yaml.Node, name string, value *yaml.Node) {
	for i := len(mapping.Content) - 2; i >= 0; i -= 2 {
		if mapping.Content[i].Value != name {
			continue
		}
		old := mapping.Content[i+1]
		value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment, old.FootComment
		mapping.Content[i+1] = value
		return
	}
	mapping.Content = append(mapping.Content, stringNode(name, mapping.Style&yaml.FlowStyle != 0), value)
}

func removeField(mapping *yaml.Node, name string) {
	for i := len(mapping.Content) - 2; i >= 0; i -= 2 {
		if mapping.Content[i].Value == name {
			mapping.Content = slices.Delete(mapping.Content, i, i+2)
		}
	}
}

// child is the mapping or list in a field; where the field is missing or null it becomes an empty one.
func child(mapping *yaml.Node, name string, kind yaml.Kind) *yaml.Node {
	if found := field(mapping, name); found != nil && found.Kind == kind {
		return found
	}
	tag := "!!map"
	if kind == yaml.SequenceNode {
		tag = "!!seq"
	}
	made := &yaml.Node{Kind: kind, Tag: tag, Style: mapping.Style & yaml.FlowStyle}
	setField(mapping, name, made)
	return made
}

// named finds the entry of a list that has a name, and nil where there is none.
func named(list *yaml.Node, name string) *yaml.Node {
	for _, entry := range list.Content {
		if entry.Kind != yaml.MappingNode {
			continue
		}
		if found := field(entry, "name"); found != nil && found.Value == name || found == nil && name == "" {
			return entry
		}
	}
	return nil
}

// addNamed appends an entry to a list. An empty list may be written as [], which its entries would follow.
func addNamed(list *yaml.Node, name string, flow bool) *yaml.Node {
	style := yaml.Style(0)
	if flow {
		style = yaml.FlowStyle
	}
	if len(list.Content) == 0 {
		list.Style = style
	}
	style = list.Style & yaml.FlowStyle
	entry := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: style}
	setField(entry, "name", stringNode(name, style != 0))
	list.Content = append(list.Content, entry)
	return entry
}

// stringNode writes a string so that YAML 1.1, which kubectl reads, takes it for one too: "yes" needs quotes there.
// In flow style it is JSON.
func stringNode(value string, flow bool) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if flow {
		node.Style = yaml.DoubleQuotedStyle
		return node
	}
	plain, err := ky.Marshal(value)
	switch {
	case err != nil, bytes.HasPrefix(plain, []byte(`"`)), bytes.HasPrefix(plain, []byte(`'`)):
		node.Style = yaml.DoubleQuotedStyle
	case strings.ContainsAny(value, "\n\r\t"):
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// nodeFromJSON builds the tree of a JSON value and keeps the order of its fields.
func nodeFromJSON(raw []byte, flow bool) (*yaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return nextNode(decoder, flow)
}

func nextNode(decoder *json.Decoder, flow bool) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		return nextNodes(decoder, token, flow)
	case string:
		return stringNode(token, flow), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(token.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: token.String()}, nil
	case bool:
		value := "false"
		if token {
			value = "true"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: value}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}

// nextNodes reads what stands between two brackets, field names included.
func nextNodes(decoder *json.Decoder, open json.Delim, flow bool) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if open == '[' {
		node = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	}
	if flow {
		node.Style = yaml.FlowStyle
	}
	for decoder.More() {
		next, err := nextNode(decoder, flow)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, next)
	}
	if _, err := decoder.Token(); err != nil && err != io.EOF {
		return nil, err
	}
	return node, nil
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// inline replaces every alias by what it stands for, and unfolds merge keys: an edit must change one entry alone.
func inline(node *yaml.Node) {
	for i, part := range node.Content {
		if part.Kind == yaml.AliasNode {
			node.Content[i] = clone(part.Alias)
		}
		inline(node.Content[i])
	}
	node.Anchor = ""
	if node.Kind == yaml.MappingNode {
		unfold(node)
	}
}

// unfold replaces "<<" by the fields that it merges. As in the YAML library that kubectl reads with, fields count in the
// order in which they are written, merged or not, and the last one of a name wins; of several mappings that one "<<"
// merges, the first wins.
func unfold(mapping *yaml.Node) {
	content := mapping.Content
	mapping.Content = make([]*yaml.Node, 0, len(content))
	for i := 0; i+1 < len(content); i += 2 {
		key, value := content[i], content[i+1]
		if key.ShortTag() != "!!merge" {
			unfoldField(mapping, key, value)
			continue
		}
		merged := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			merged = value.Content
		}
		for _, from := range slices.Backward(merged) {
			for j := 0; j+1 < len(from.Content); j += 2 {
				unfoldField(mapping, from.Content[j], from.Content[j+1])
			}
		}
	}
}

// unfoldField sets a field in its place, or appends it.
func unfoldField(mapping *yaml.Node, key, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key.Value {
			mapping.Content[i+1] = value
			return
		}
	}
	mapping.Content = append(mapping.Content, key, value)
}

func clone(node *yaml.Node) *yaml.Node {
	copied := *node
	copied.Content = make([]*yaml.Node, len(node.Content))
	for i, part := range node.Content {
		copied.Content[i] = clone(part)
	}
	return &copied
}
