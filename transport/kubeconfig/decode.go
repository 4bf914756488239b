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

	"github.com/anykind/anykind/internal/yamltree"
)

// decoder decodes the parts of a document. Its errors have the position of the wrong value.
type decoder struct {
	data []byte
	root *yaml.Node // parsed when the first position is needed
}

// path leads from the document's root to a value: field names and list indices.
type path []any

// decode decodes raw, the value at the path, into target like kubectl; entry prefixes errors. Empty raw leaves target as it is.
// encoding/json decodes an invalid value again, because its errors have the field's name.
func (d *decoder) decode(raw []byte, target any, entry string, at path) error {
	if len(raw) == 0 {
		return nil
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, target)
	if err == nil {
		return nil
	}
	if extension, ok := errors.AsType[extensionError](err); ok {
		return d.errorAt(entry+"field \"extensions\": "+string(extension), append(at, "extensions")...)
	}
	if field := invalidBase64(raw); field != "" {
		return d.errorAt(fmt.Sprintf("%sfield %q is not base64 (inline data is the PEM file in base64, on one line; "+
			"a file's name goes into %q)", entry, field, strings.TrimSuffix(field, "-data")), append(at, field)...)
	}
	typeError, ok := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(raw, reflect.New(reflect.TypeOf(target).Elem()).Interface()))
	if !ok {
		return d.errorAt(entry+"it does not have the structure of a kubeconfig", at...)
	}
	for field := range strings.SplitSeq(typeError.Field, ".") {
		if field != "" {
			at = append(at, field)
		}
	}
	return d.errorAt(entry+typeMismatch(typeError, at), at...)
}

// typeMismatch describes the actual and the expected type of a value. The value itself may be a secret.
func typeMismatch(err *json.UnmarshalTypeError, at path) string {
	subject := "it"
	if len(at) > 0 {
		if field, ok := at[len(at)-1].(string); ok {
			subject = fmt.Sprintf("field %q", field)
		}
	}
	found, _, _ := strings.Cut(err.Value, " ") // without a number's digits
	want := "mapping"
	hint := ""
	switch kind := err.Type.Kind(); {
	case kind == reflect.String:
		want = "string"
		if found == "number" || found == "bool" {
			hint = " (put it in quotes)"
		}
	case kind == reflect.Bool:
		want = "bool"
		hint = " (write true or false, without quotes)"
	case kind == reflect.Slice && err.Type.Elem().Kind() == reflect.Uint8:
		want = "base64 string"
	case kind == reflect.Slice:
		want = "list"
	}
	switch found {
	case "object":
		found = "mapping"
	case "array":
		found = "list"
	}
	return fmt.Sprintf("%s is a %s, want a %s%s", subject, found, want, hint)
}

// invalidBase64 returns the name of the first field with inline data in invalid base64, or "".
func invalidBase64(raw []byte) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // only a mapping has these fields
	for _, field := range []string{"certificate-authority-data", "client-certificate-data", "client-key-data"} {
		var text string
		if json.Unmarshal(fields[field], &text) != nil {
			continue
		}
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return field
		}
	}
	return ""
}

// errorAt returns an error with the position of the value at the path.
func (d *decoder) errorAt(problem string, at ...any) error {
	if d.root == nil {
		d.root = &yaml.Node{}
		// In rare cases the parser rejects input accepted by YAMLToJSON. The position stays unknown.
		if documents, _, err := yamltree.Parse(d.data, 1); err == nil && len(documents) > 0 {
			d.root = documents[0].Content[0]
		}
	}
	found := yamltree.At(d.root, at)
	return &ParseError{Line: found.Line, Column: found.Column, Problem: problem}
}

// conversionError explains why YAMLToJSON failed. Its own message is not shown, as it may quote a value.
func (d *decoder) conversionError() error {
	if _, line, err := yamltree.Parse(d.data, 1); err != nil {
		return &ParseError{Line: line, Problem: err.Error()}
	}
	return &ParseError{Problem: "its YAML cannot be converted to JSON " +
		"(field names must be plain text, values must match their tags, and aliases must be few)"}
}
