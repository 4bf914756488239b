package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/editdistance"
	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/sanitize"
)

// At returns the schema of a field, by a path as of [unstructured.ParsePath]: names of fields and keys of maps, and elements of
// lists in brackets or by index, such as "spec", "containers", "[name=app]", "image". An element may be left out. A field that the
// schema does not have is an error with suggestions. Below a field of any value every field is of any value: an empty schema.
func (s *Schema) At(path ...string) (*Schema, error) {
	for i, step := range path {
		next, err := s.step(step)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", sanitize.Text(strings.Join(path[:i+1], "."), maxError), err)
		}
		s = next
	}
	return s, nil
}

func (s *Schema) step(step string) (*Schema, error) {
	if strings.HasPrefix(step, "[") {
		if items := s.Items(); items != nil {
			return items, nil
		}
		if s.isAny() {
			return &Schema{}, nil
		}
		return nil, fmt.Errorf("not a list, but %s", s.typeText())
	}
	if items := s.Items(); items != nil {
		if isIndex(step) && items.Field(step) == nil {
			return items, nil
		}
		s = items
	}
	if field := s.Field(step); field != nil {
		return field, nil
	}
	values, hasValues := s.Values()
	switch {
	case values != nil:
		return values, nil
	case hasValues || s.isAny():
		return &Schema{}, nil
	case len(s.properties) == 0:
		return nil, fmt.Errorf("no such field: the value is %s", s.typeText())
	}
	return nil, &UnknownFieldError{Field: step, Suggestions: s.suggest(step)}
}

// isIndex reports whether a step is the index of a list's element.
func isIndex(step string) bool {
	_, err := strconv.ParseUint(step, 10, 31)
	return err == nil
}

// isAny reports whether any field and element is valid.
func (s *Schema) isAny() bool {
	return s.PreserveUnknownFields || s.Unresolved != nil || s.Type == "" && len(s.properties) == 0 && s.items == nil
}

// UnknownFieldError reports a field that a schema does not have.
type UnknownFieldError struct {
	Field       string
	Suggestions []string // similar fields, the most similar first
}

func (e *UnknownFieldError) Error() string {
	text := "no field " + strconv.Quote(sanitize.Text(e.Field, maxError))
	if len(e.Suggestions) > 0 {
		text += ": did you mean " + sanitize.Join(e.Suggestions, maxError) + "?"
	}
	return text
}

// maxSuggestions bounds the suggestions of an error.
const maxSuggestions = 3

// suggest returns the fields with names similar to the typed one. Fields that differ in case come first.
func (s *Schema) suggest(typed string) []string {
	names := slices.Sorted(maps.Keys(s.properties))
	for _, name := range names {
		if strings.EqualFold(name, typed) {
			return []string{name}
		}
	}
	return editdistance.Similar(typed, names, maxSuggestions)
}

// typeText returns the type as an error names it: a string, or a list.
func (s *Schema) typeText() string {
	switch {
	case s.IntOrString:
		return "an integer or string"
	case s.Type == "array":
		return "a list"
	case s.Type == "":
		return "of any type"
	case strings.ContainsAny(s.Type[:1], "aeio"):
		return "an " + s.Type
	}
	return "a " + s.Type
}

// ParseValue returns the value that a text stands for in a field of this schema: a string field takes the text as it is, and a
// number, boolean, object or list its JSON form. null stands for no value where the schema is nullable. An int-or-string takes an
// integer where the text is one. A field of any type takes JSON, or a string for a text that is none. Numbers are int64 and
// float64, as in decoded objects. A text in quotes is the JSON form of a string.
func (s *Schema) ParseValue(text string) (any, error) {
	value, isJSON := parseJSON(text)
	if value == nil && isJSON && s.Nullable {
		return nil, nil
	}
	var err error
	switch {
	case s.takesText():
		if quoted, isText := value.(string); isText {
			value = quoted
		} else {
			value = text
		}
	case s.IntOrString:
		if !isJSON || !isIntOrString(value) {
			value = text
		}
	case s.isAny():
		if !isJSON {
			value = text
		}
	case !isJSON || !s.takes(value):
		err = fmt.Errorf("the value is %s", s.typeText())
	}
	if err == nil {
		err = s.checkEnum(value)
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", sanitize.Text(text, maxError), err)
	}
	return value, nil
}

// takesText reports whether the value is a string. Quantities and times are strings, too.
func (s *Schema) takesText() bool { return s.Type == "string" }

func isIntOrString(value any) bool {
	_, isText := value.(string)
	n, _ := toNumber(value)
	return isText || n.isInteger
}

// takes reports whether a decoded JSON value has the schema's type.
func (s *Schema) takes(value any) bool {
	if n, isNumber := toNumber(value); isNumber {
		value = n.value()
	}
	return s.isType(jsonType(value))
}

func (s *Schema) checkEnum(value any) error {
	if len(s.Enum) == 0 || slices.ContainsFunc(s.Enum, func(allowed any) bool { return equalJSON(value, allowed) }) {
		return nil
	}
	var allowed []string
	for _, one := range s.Enum {
		allowed = append(allowed, fmt.Sprint(one))
	}
	return fmt.Errorf("the value is one of %s", sanitize.Join(allowed, maxError))
}

// parseJSON decodes a JSON value with the number types of decoded objects.
func parseJSON(text string) (value any, isJSON bool) {
	switch text = strings.TrimSpace(text); text {
	case "":
		return nil, false
	case "null":
		return nil, true
	case "true", "false":
		return text == "true", true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return n, true
	}
	r := jsonread.Borrow([]byte("[" + text + "]")) // a number at the end of the input is an error
	defer r.Release()
	list, err := r.Value()
	items, _ := list.([]any)
	if err != nil || r.End() != nil || len(items) != 1 {
		return nil, false
	}
	return items[0], true
}
