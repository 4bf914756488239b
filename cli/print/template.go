package print

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"github.com/anykind/anykind/cli/internal/gotemplate"
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
	parsed, err := gotemplate.Parse("output", text, &gotemplate.Options{
		MissingKeyError: !allowMissingKeys,
		Strings:         map[string]func(string) (string, error){"base64decode": base64decode},
		Values:          map[string]func(any, ...any) any{"exists": exists},
	})
	if err != nil {
		return nil, fmt.Errorf("error parsing template %s, %w", text, err)
	}
	return &templateFormat{text: text, template: parsed}, nil
}

// object writes the template's output. As in kubectl, an error is explained in the output, with the template and the data.
func (f *templateFormat) object(w io.Writer, object map[string]any) error {
	var output bytes.Buffer
	failed := f.template.Execute(&output, object)
	if failed != nil {
		data, err := json.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&output, "Error executing template: %v. Printing more information for debugging the template:\n", failed)
		fmt.Fprintf(&output, "\ttemplate was:\n\t\t%v\n", f.text)
		fmt.Fprintf(&output, "\traw data was:\n\t\t%s\n", data)
		fmt.Fprintf(&output, "\tobject given to template engine was:\n\t\t%+v\n\n", object)
		failed = fmt.Errorf("error executing template %q: %w", f.text, failed)
	}
	if _, err := output.WriteTo(w); err != nil {
		return err
	}
	return failed
}

func (f *templateFormat) list(w io.Writer, objects func(yield func(map[string]any) bool)) error {
	return f.object(w, wholeList(objects))
}

// base64decode decodes a text, such as a value of a Secret.
func base64decode(text string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("base64 decode failed: %w", err)
	}
	return string(data), nil
}

// exists reports whether item has a non-nil value at the indices: keys of maps and positions in lists.
func exists(item any, indices ...any) any {
	for _, index := range indices {
		switch value := item.(type) {
		case map[string]any:
			name, ok := index.(string)
			if !ok {
				return false
			}
			item = value[name]
		case []any:
			at := -1
			switch index := index.(type) {
			case int:
				at = index
			case int64: // a number of the object
				at = int(index)
			}
			if at < 0 || at >= len(value) {
				return false
			}
			item = value[at]
		default:
			return false
		}
	}
	return item != nil
}
