package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/unstructured"
)

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
	case s.IntOrString || s.isAny():
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

// takes reports whether a decoded JSON value has the schema's type.
func (s *Schema) takes(value any) bool {
	switch value := value.(type) {
	case bool:
		return s.Type == "boolean"
	case int64:
		return s.Type == "integer" || s.Type == "number"
	case float64:
		return s.Type == "number" || s.Type == "integer" && value == float64(int64(value))
	case map[string]any:
		return s.Type == "object"
	case []any:
		return s.Type == "array"
	}
	return false
}

func (s *Schema) checkEnum(value any) error {
	if len(s.Enum) == 0 || slices.ContainsFunc(s.Enum, func(allowed any) bool { return allowed == value }) {
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
	object, err := unstructured.Decode([]byte(`{"kind":"Value","apiVersion":"v1","value":` + text + `}`))
	if err != nil || len(object.Object) != 3 {
		return nil, false
	}
	return object.Object["value"], true
}
