package kubeconfig

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
)

// decoding reads the parts of one document and says of what it cannot read where that stands.
type decoding struct {
	yaml []byte
	root *yaml.Node // parsed when the first position is asked for
}

// path leads from the document's root to a value: field names and indices of lists.
type path []any

// decode reads raw, which stands at the path, into target; entry names it in errors. It reads as kubectl does, case
// included. Only where that fails is the standard library asked too, because its errors name the field.
func (d *decoding) decode(raw []byte, target any, entry string, at path) error {
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, target)
	if err == nil {
		return nil
	}
	prefix := ""
	if entry != "" {
		prefix = entry + ": "
	}
	if extension := extensionError(""); errors.As(err, &extension) {
		return d.wrong(prefix+"field \"extensions\": "+string(extension), append(at, "extensions")...)
	}
	if field, ok := badBase64(raw); ok {
		return d.wrong(fmt.Sprintf("%sfield %q is not base64: inline data is the PEM file in base64, on one line; "+
			"a file's name goes into %q", prefix, field, strings.TrimSuffix(field, "-data")), append(at, field)...)
	}
	wrongType := (*json.UnmarshalTypeError)(nil)
	if !errors.As(json.Unmarshal(raw, reflect.New(reflect.TypeOf(target).Elem()).Interface()), &wrongType) {
		return d.wrong(prefix+"it does not have the shape of a kubeconfig", at...)
	}
	for field := range strings.SplitSeq(wrongType.Field, ".") {
		if field != "" {
			at = append(at, field)
		}
	}
	return d.wrong(prefix+mistaken(wrongType, at), at...)
}

// mistaken says of which type a value is and of which it should be. The value itself may be a secret.
func mistaken(wrong *json.UnmarshalTypeError, at path) string {
	found, _, _ := strings.Cut(wrong.Value, " ") // a number comes with its digits
	what := "it"
	if len(at) > 0 {
		if field, ok := at[len(at)-1].(string); ok {
			what = fmt.Sprintf("field %q", field)
		}
	}
	want, hint := "mapping", ""
	switch kind := wrong.Type.Kind(); {
	case kind == reflect.String:
		want = "string"
		if found == "number" || found == "bool" {
			hint = ": put it in quotes"
		}
	case kind == reflect.Bool:
		want, hint = "bool", ": write true or false, without quotes"
	case kind == reflect.Slice && wrong.Type.Elem().Kind() == reflect.Uint8:
		want = "string of base64"
	case kind == reflect.Slice:
		want = "list"
	}
	switch found {
	case "object":
		found = "mapping"
	case "array":
		found = "list"
	}
	return fmt.Sprintf("%s holds a %s where a %s belongs%s", what, found, want, hint)
}

// badBase64 finds the field whose inline data cannot be decoded.
func badBase64(raw []byte) (string, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return "", false
	}
	for _, field := range []string{"certificate-authority-data", "client-certificate-data", "client-key-data"} {
		var text string
		if json.Unmarshal(fields[field], &text) != nil {
			continue
		}
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return field, true
		}
	}
	return "", false
}

// wrong is an error about what stands at the path.
func (d *decoding) wrong(problem string, at ...any) error {
	if d.root == nil {
		d.root = &yaml.Node{}
		// What cannot be parsed here could be by YAMLToJSON: the two differ in rare corners. The position stays unknown.
		if parsed, err := parseNode(d.yaml); err == nil && parsed != nil {
			d.root = parsed
		}
	}
	found := nodeAt(d.root, at)
	return &ParseError{Line: found.Line, Column: found.Column, Problem: problem}
}

// nodeAt goes down the path as far as there is something.
func nodeAt(node *yaml.Node, at path) *yaml.Node {
	if node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
	}
	for _, step := range at {
		for node.Kind == yaml.AliasNode && node.Alias != nil {
			node = node.Alias
		}
		var next *yaml.Node
		switch step := step.(type) {
		case string:
			next = field(node, step)
		case int:
			if node.Kind == yaml.SequenceNode && step < len(node.Content) {
				next = node.Content[step]
			}
		}
		if next == nil {
			return node
		}
		node = next
	}
	return node
}

// field is a mapping's value: of fields that share a name the last counts, as in kubectl.
func field(mapping *yaml.Node, name string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := len(mapping.Content) - 2; i >= 0; i -= 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}
