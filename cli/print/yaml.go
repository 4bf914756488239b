package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml/kyaml"
)

// yamlFormat writes YAML documents like kubectl, separated by ---.
type yamlFormat struct{ documents int }

func (f *yamlFormat) object(w io.Writer, object map[string]any) error {
	if err := separate(w, &f.documents); err != nil {
		return err
	}
	data, err := encodeYAML(object)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// separate writes the line between two documents.
func separate(w io.Writer, documents *int) error {
	*documents++
	if *documents == 1 {
		return nil
	}
	_, err := io.WriteString(w, "---\n")
	return err
}

func (f *yamlFormat) list(w io.Writer, objects func(yield func(map[string]any) bool)) error {
	if err := separate(w, &f.documents); err != nil {
		return err
	}
	start := "apiVersion: v1\nitems:\n"
	for object := range objects {
		// Encoding a list of a single object folds its lines at the columns of the whole list.
		data, err := encodeYAML([]any{object})
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, start+string(data)); err != nil {
			return err
		}
		start = ""
	}
	if start != "" {
		start = "apiVersion: v1\nitems: []\n"
	}
	_, err := io.WriteString(w, start+"kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	return err
}

// encodeYAML encodes a decoded JSON value like sigs.k8s.io/yaml, but without encoding JSON first.
func encodeYAML(value any) ([]byte, error) {
	data, err := yaml.Marshal(withIntegers(value))
	if err != nil {
		return nil, fmt.Errorf("encode YAML: %w", err)
	}
	return data, nil
}

// withIntegers replaces floats without a fraction by integers, as in JSON. It copies only maps and lists with such floats.
func withIntegers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := false
		for key, field := range value {
			if changed := withIntegers(field); !same(changed, field) {
				if !copied {
					value = maps.Clone(value)
					copied = true
				}
				value[key] = changed
			}
		}
		return value
	case []any:
		copied := false
		for i, element := range value {
			if changed := withIntegers(element); !same(changed, element) {
				if !copied {
					value = slices.Clone(value)
					copied = true
				}
				value[i] = changed
			}
		}
		return value
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	}
	return value
}

// same reports whether withIntegers returned its argument: the same map or list, or an equal scalar.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	}
	return a == b
}

// kyamlFormat writes the strict form of YAML with braces.
type kyamlFormat struct{ encoder kyaml.Encoder }

func (f *kyamlFormat) object(w io.Writer, object map[string]any) error {
	return f.encoder.FromObject(object, w)
}

func (f *kyamlFormat) list(w io.Writer, objects func(yield func(map[string]any) bool)) error {
	data, err := json.Marshal(wholeList(objects))
	if err != nil {
		return err
	}
	return f.encoder.FromYAML(bytes.NewReader(data), w)
}
