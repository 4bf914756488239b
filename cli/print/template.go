package print

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/anykind/anykind/cli/print/internal/gotemplate"
	"github.com/anykind/anykind/unstructured/jsonpath"
)

// jsonPathFormat evaluates a JSONPath template over an object or the whole list.
type jsonPathFormat struct {
	text     string
	template *jsonpath.Template
	asJSON   bool
}

func newJSONPathFormat(text string, allowMissingKeys, asJSON bool) (*jsonPathFormat, error) {
	parsed, err := jsonpath.Parse(text, &jsonpath.Options{AllowMissingKeys: allowMissingKeys})
	if err != nil {
		return nil, fmt.Errorf("error parsing jsonpath %s, %w", text, err)
	}
	return &jsonPathFormat{text: text, template: parsed, asJSON: asJSON}, nil
}

func (f *jsonPathFormat) object(w io.Writer, object map[string]any) error {
	if !f.asJSON {
		if err := f.template.Execute(w, object); err != nil {
			return fmt.Errorf("error executing jsonpath %q: %w", f.text, err)
		}
		return nil
	}
	values, err := f.template.Values(object)
	if err != nil {
		return fmt.Errorf("error executing jsonpath %q: %w", f.text, err)
	}
	if values == nil {
		values = []any{}
	}
	data, err := json.MarshalIndent(values, "", "    ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

func (f *jsonPathFormat) list(w io.Writer, objects func(yield func(map[string]any) bool)) error {
	return f.object(w, wholeList(objects))
}

// templateFormat executes a Go template over an object or the whole list.
type templateFormat struct {
	text     string
	template *gotemplate.Template
}

func newTemplateFormat(text string, allowMissingKeys bool) (*templateFormat, error) {
	functions := map[string]gotemplate.Function{"exists": exists, "base64decode": base64decode}
	parsed, err := gotemplate.Parse(text, functions, !allowMissingKeys)
	if err != nil {
		return nil, fmt.Errorf("error parsing template %s, %w", text, err)
	}
	return &templateFormat{text: text, template: parsed}, nil
}

func (f *templateFormat) object(w io.Writer, object map[string]any) error {
	var output bytes.Buffer
	if err := f.template.Execute(&output, object); err != nil {
		return fmt.Errorf("error executing template %q: %w", f.text, err)
	}
	_, err := output.WriteTo(w)
	return err
}

func (f *templateFormat) list(w io.Writer, objects func(yield func(map[string]any) bool)) error {
	return f.object(w, wholeList(objects))
}

// base64decode decodes a text, such as a value of a Secret.
func base64decode(args []any) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("wrong number of args for base64decode: want 1 got %d", len(args))
	}
	text, ok := args[0].(string)
	if !ok {
		return nil, errors.New("base64 decode failed: not a text")
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("base64 decode failed: %w", err)
	}
	return string(data), nil
}

// exists reports whether there is a non-nil value at the indices.
func exists(args []any) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("wrong number of args for exists: want at least 1 got 0")
	}
	item := args[0]
	for _, index := range args[1:] {
		switch value := item.(type) {
		case map[string]any:
			name, ok := index.(string)
			if !ok {
				return false, nil
			}
			item = value[name]
		case []any:
			at, ok := index.(int64)
			if !ok || at < 0 || at >= int64(len(value)) {
				return false, nil
			}
			item = value[at]
		default:
			return false, nil
		}
	}
	return item != nil && !gotemplate.IsMissing(item), nil
}
