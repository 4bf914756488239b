// Package jsonpath evaluates kubectl's JSONPath templates, such as {.items[*].metadata.name}, over objects of any kind.
//
//	template, err := jsonpath.Parse(`{range .items[*]}{.metadata.name}{"\n"}{end}`, nil)
//	if err != nil {
//		return err
//	}
//	err = template.Execute(os.Stdout, list)
//
// The dialect is kubectl's for get -o jsonpath (https://kubernetes.io/docs/reference/kubectl/jsonpath/):
//
//	hello {.kind}                      text, and actions in braces
//	.metadata.name                     a field; .*, the value of every field
//	.metadata.labels.app\.example/x    a backslash keeps a dot in a name; also ['app\.example/x']
//	[0] [-1] [1:3] [::2] [*]           elements of a list, from the end, a slice, with a step, all
//	[0,2] ['name','kind']              a union
//	..name                             every field called name, at any depth
//	[?(@.type=="Ready")]               elements with a true comparison: ==, !=, <, <=, > or >=
//	[?(@.spec)]                        elements with a value
//	{range .items[*]} … {end}          the part in between for each value: @, $ and a leading dot are the value
//	"\t" '{'                           quoted text
//
// Results equal the results of client-go's util/jsonpath, with these differences:
//
//   - The fields of a map are sorted by name.
//   - A slice without elements, or [*] of an empty list, does not end the selection from the lists behind it.
//   - A filter such as [?(@.a[1])] does not select an element without that index.
//   - A range without values does not evaluate its body, and @ of null is null.
//   - The operator of a filter is not searched in quoted text.
//   - An integer and a float can be compared.
//   - The steps * and .. do not split strings into bytes.
//   - Quoted text may end in an escaped backslash.
//   - Unknown words, unknown operators and a range without its end are errors of Parse.
package jsonpath

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/anykind/anykind/unstructured"
)

// Options change how a template is evaluated.
type Options struct {
	// AllowMissingKeys ignores fields missing in every value, like kubectl get by default. Otherwise a missing field is an error.
	// An index past the end of a list is always an error.
	AllowMissingKeys bool
	// MaxOutput limits the output of Execute, in bytes. 0 means 256 MiB.
	MaxOutput int64
}

const (
	defaultMaxOutput = 256 << 20
	// maxTemplate is the size of a template's text, in bytes.
	maxTemplate = 64 << 10
	// maxRanges limits the nesting of ranges, and maxDepth the levels of a .. step.
	maxRanges = 32
	maxDepth  = 10000
	// maxValues limits the values of one evaluation, intermediate values included.
	maxValues = 5_000_000
)

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	nodes []node
	opts  Options
}

// Parse parses a template of at most 64 KiB; nil opts mean defaults. An error contains the position of the invalid byte, counted
// from 0.
func Parse(text string, opts *Options) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("jsonpath: the template has %d bytes, more than %d", len(text), maxTemplate)
	}
	p := templateParser{text: text}
	nodes, err := p.nodes(0, 0)
	if err != nil {
		return nil, err
	}
	t := &Template{nodes: nodes}
	if opts != nil {
		t.opts = *opts
	}
	if t.opts.MaxOutput == 0 {
		t.opts.MaxOutput = defaultMaxOutput
	}
	return t, nil
}

// Execute evaluates the template over data and writes the result to w. Values of one action are separated by a space; maps and
// lists are written as JSON.
//
// data is an *unstructured.Object or *unstructured.Lazy, or a decoded JSON value: a map[string]any, []any, string, number, bool
// or nil. kubectl prints several objects as one list: pass map[string]any{"items": items}.
//
// Nothing is written if the evaluation fails. A template selects at most five million values, .. descends at most 10000 levels,
// and the output ends with an error at Options.MaxOutput. data must not be changed in the meantime.
func (t *Template) Execute(w io.Writer, data any) error {
	var results []result
	if err := t.evaluate(data, func(r result) { results = append(results, r) }); err != nil {
		return err
	}
	written := int64(0)
	for _, r := range results {
		text, err := r.text()
		if err != nil {
			return err
		}
		if r.afterSpace {
			text = " " + text
		}
		if written += int64(len(text)); written > t.opts.MaxOutput {
			return fmt.Errorf("jsonpath: the output has more than %d bytes", t.opts.MaxOutput)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// Values returns the values selected by the template's actions, in order and without the text between actions. The values share
// memory with data. data and limits are as for Execute, but MaxOutput does not apply.
func (t *Template) Values(data any) ([]any, error) {
	var values []any
	err := t.evaluate(data, func(r result) {
		if !r.isText {
			values = append(values, r.value)
		}
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}

// result is a text of the template, or a value selected by an action.
type result struct {
	value      any
	isText     bool
	afterSpace bool // false for the first value of an action
}

func (r result) text() (string, error) {
	switch v := r.value.(type) {
	case nil:
		return "null", nil
	case string:
		return v, nil
	case map[string]any, []any:
		data, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("jsonpath: encode a result: %w", err)
		}
		return string(data), nil
	default:
		if _, isNumber := numberOf(v); !isNumber && !isBool(v) {
			return "", fmt.Errorf("jsonpath: a result of type %T has no JSON form", v)
		}
		return fmt.Sprint(v), nil
	}
}

// plain returns data as a decoded JSON value.
func plain(data any) (any, error) {
	switch data := data.(type) {
	case *unstructured.Object:
		if data == nil || data.Object == nil {
			return nil, nil //nolint:nilnil // a nil object is null
		}
		return data.Object, nil
	case *unstructured.Lazy:
		if data == nil {
			return nil, nil //nolint:nilnil // as above
		}
		obj, err := data.Object()
		if err != nil {
			return nil, fmt.Errorf("jsonpath: decode the object: %w", err)
		}
		return obj.Object, nil
	case nil, map[string]any, []any, string, bool, int64, float64:
		return data, nil
	default:
		return nil, fmt.Errorf("jsonpath: the data is %T, not an object or a decoded JSON value (unstructured.From converts structs)", data)
	}
}
