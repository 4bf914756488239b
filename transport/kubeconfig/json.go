package kubeconfig

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// writeJSON writes the tree of a JSON document as JSON: YAML's own escapes are not JSON's.
func writeJSON(out *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.DocumentNode:
		return writeJSON(out, node.Content[0])
	case yaml.MappingNode:
		return writeMembers(out, node, '{', '}', true)
	case yaml.SequenceNode:
		return writeMembers(out, node, '[', ']', false)
	default:
		if node.ShortTag() != "!!str" {
			out.WriteString(node.Value) // a number, a bool or null, as it was written
			return nil
		}
		return writeString(out, node.Value)
	}
}

func writeMembers(out *bytes.Buffer, node *yaml.Node, start, end byte, keyed bool) error {
	out.WriteByte(start)
	for i, part := range node.Content {
		switch {
		case keyed && i%2 == 1:
			out.WriteByte(':')
		case i > 0:
			out.WriteByte(',')
		}
		if err := writeJSON(out, part); err != nil {
			return err
		}
	}
	out.WriteByte(end)
	return nil
}

func writeString(out *bytes.Buffer, value string) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the encoder's line break
	return nil
}
