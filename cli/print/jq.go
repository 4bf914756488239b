package print

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"
)

// jqFormat runs a jq program for each object. The jq functions input and inputs read the next objects of a list. Each result is
// written on a line: strings raw, and values of other types as JSON.
type jqFormat struct {
	code  *gojq.Code
	input *objectInput
}

// objectInput yields the objects of a list to a jq program.
type objectInput struct{ next func() (map[string]any, bool) }

func (i *objectInput) Next() (any, bool) {
	if i.next == nil {
		return nil, false
	}
	object, ok := i.next()
	if !ok {
		return nil, false
	}
	return toJQ(object), true
}

func compileJQ(expression string, options ...gojq.CompilerOption) (*gojq.Code, error) {
	query, err := gojq.Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("parse jq %q: %w", expression, err)
	}
	code, err := gojq.Compile(query, options...)
	if err != nil {
		return nil, fmt.Errorf("compile jq %q: %w", expression, err)
	}
	return code, nil
}

func newJQFormat(expression string) (*jqFormat, error) {
	if expression == "" {
		return nil, errors.New("jq format specified but no expression given")
	}
	f := &jqFormat{input: &objectInput{}}
	code, err := compileJQ(expression, gojq.WithInputIter(f.input))
	f.code = code
	return f, err
}

func (f *jqFormat) object(w io.Writer, object map[string]any) error {
	results := f.code.Run(toJQ(object))
	for {
		value, ok := results.Next()
		if !ok {
			return nil
		}
		if err, ok := value.(error); ok {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				return nil
			}
			return fmt.Errorf("jq: %s: %w", nameOf(object), err)
		}
		line, err := jqLine(value)
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
}

func jqLine(value any) ([]byte, error) {
	if text, ok := value.(string); ok {
		return append([]byte(text), '\n'), nil
	}
	data, err := gojq.Marshal(value)
	return append(data, '\n'), err
}

func (f *jqFormat) list(w io.Writer, objects func(yield func(map[string]any) bool)) error {
	next, stop := pull(objects)
	defer stop()
	f.input.next = next
	defer func() { f.input.next = nil }()
	for {
		object, ok := next()
		if !ok {
			return nil
		}
		if err := f.object(w, object); err != nil {
			return err
		}
	}
}

// toJQ copies a value with the types of gojq: int instead of int64.
func toJQ(value any) any {
	switch value := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, field := range value {
			object[key] = toJQ(field)
		}
		return object
	case []any:
		array := make([]any, len(value))
		for i, element := range value {
			array[i] = toJQ(element)
		}
		return array
	case int64:
		return int(value)
	case json.Number:
		return value.String()
	}
	return value
}

// holds reports whether the first result of a jq expression is neither false nor null.
func holds(code *gojq.Code, object map[string]any) (bool, error) {
	value, ok := code.Run(toJQ(object)).Next()
	if !ok || value == nil || value == false {
		return false, nil
	}
	if err, ok := value.(error); ok {
		return false, fmt.Errorf("--where: %s: %w", nameOf(object), err)
	}
	return true, nil
}
