package print

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/anykind/anykind/cli/internal/jsonpathflag"
	"github.com/anykind/anykind/unstructured/jsonpath"
)

// columnsFormat writes a table with a JSONPath expression per column.
type columnsFormat struct {
	headers   []string
	templates []*jsonpath.Template
	noHeaders bool
	table     *columnWriter
}

func newColumnsFormat(name, argument string, noHeaders bool) (*columnsFormat, error) {
	if argument == "" {
		return nil, errors.New("custom-columns format specified but no custom columns given")
	}
	headers, paths, err := inlineColumns(argument)
	if name == "custom-columns-file" {
		headers, paths, err = columnsOfFile(argument)
		noHeaders = false
	}
	if err != nil {
		return nil, err
	}
	f := &columnsFormat{headers: headers, noHeaders: noHeaders}
	for _, path := range paths {
		expression, err := jsonpathflag.Relaxed(path)
		if err != nil {
			return nil, err
		}
		parsed, err := jsonpath.Parse(expression, &jsonpath.Options{AllowMissingKeys: true})
		if err != nil {
			return nil, err
		}
		f.templates = append(f.templates, parsed)
	}
	return f, nil
}

func inlineColumns(argument string) (headers, paths []string, err error) {
	for part := range strings.SplitSeq(argument, ",") {
		header, path, found := strings.Cut(part, ":")
		if !found {
			return nil, nil, fmt.Errorf("unexpected custom-columns spec: %s, expected <header>:<json-path-expr>", part)
		}
		headers = append(headers, header)
		paths = append(paths, path)
	}
	return headers, paths, nil
}

func columnsOfFile(path string) (headers, paths []string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("error reading template %s, %w", path, err)
	}
	const expected = "Expected format is one line of space separated headers, one line of space separated column specs."
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(data) == 0 {
		return nil, nil, errors.New("invalid template, missing header line. " + expected)
	}
	if len(lines) < 2 {
		return nil, nil, errors.New("invalid template, missing spec line. " + expected)
	}
	headers = strings.Fields(lines[0])
	paths = strings.Fields(lines[1])
	if len(headers) != len(paths) {
		return nil, nil, fmt.Errorf("number of headers (%d) and field specifications (%d) don't match", len(headers), len(paths))
	}
	return headers, paths, nil
}

func (f *columnsFormat) object(w io.Writer, object map[string]any) error {
	return f.list(w, func(yield func(map[string]any) bool) { yield(object) })
}

func (f *columnsFormat) list(w io.Writer, objects func(yield func(map[string]any) bool)) error {
	if f.table == nil {
		f.table = newColumnWriter(w, palette{})
		if !f.noHeaders {
			if err := f.table.row(f.headers, true); err != nil {
				return err
			}
		}
	}
	cells := make([]string, len(f.templates))
	for object := range objects {
		for i, template := range f.templates {
			values, err := template.Values(object)
			if err != nil {
				return err
			}
			cells[i] = joinValues(values)
		}
		if err := f.table.row(cells, false); err != nil {
			return err
		}
	}
	return f.table.flush()
}

func joinValues(values []any) string {
	if len(values) == 0 {
		return "<none>"
	}
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = escapeTerminal(fmt.Sprint(value))
	}
	return strings.Join(texts, ",")
}
