// Package assign applies the arguments PATH=VALUE and PATH- to objects, and completes them.
package assign

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// Assignment is an argument PATH=VALUE or PATH-.
type Assignment struct {
	text     string // path as typed
	path     []string
	value    string
	isRemove bool
}

// Parse splits arguments into objects and the assignments behind them.
func Parse(args []string) (resources []string, assignments []Assignment, err error) {
	for _, arg := range args {
		text, value, hasValue := cutAssignment(arg)
		name, isRemove := strings.CutSuffix(arg, "-")
		switch {
		case hasValue:
			isRemove = false
		case isRemove && name != "":
			text = name
		case len(assignments) > 0:
			return nil, nil, fmt.Errorf("all resources must be specified before field changes: %s", arg)
		default:
			resources = append(resources, arg)
			continue
		}
		path, err := unstructured.ParsePath(text)
		if err == nil && len(path) == 0 {
			err = errors.New("the path is empty")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", arg, err)
		}
		assignments = append(assignments, Assignment{text: text, path: path, value: value, isRemove: isRemove})
	}
	return resources, assignments, nil
}

// cutAssignment cuts an argument at the first '=' outside brackets and quotes.
func cutAssignment(arg string) (path, value string, found bool) {
	depth := 0
	var quote rune
	isEscaped := false
	for i, r := range arg {
		switch {
		case isEscaped:
			isEscaped = false
		case r == '\\':
			isEscaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case depth > 0 && (r == '"' || r == '\''):
			quote = r
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == '=' && depth <= 0:
			return arg[:i], arg[i+1:], i > 0
		}
	}
	return arg, "", false
}

// KindFunc returns the schema of the object's kind, or nil if it is not known.
type KindFunc func() *schema.Schema

// Apply sets or removes the field in obj. Unless canAppend is set, a list element selected by key must exist. The value of a new
// field has the type that the schema has for it: an unknown field is a *schema.UnknownFieldError.
func (a *Assignment) Apply(obj *unstructured.Object, canAppend bool, kind KindFunc) error {
	if a.isRemove {
		_, err := unstructured.Delete(obj, a.path...)
		return err
	}
	if !canAppend {
		if err := a.checkElements(obj); err != nil {
			return err
		}
	}
	value, err := a.typed(obj, kind)
	if err != nil {
		return err
	}
	return unstructured.Set(obj, value, a.path...)
}

// checkElements returns an error if the path selects a missing element by key.
func (a *Assignment) checkElements(obj *unstructured.Object) error {
	for i, step := range a.path {
		if !strings.HasPrefix(step, "[") || !strings.Contains(step, "=") {
			continue
		}
		parent, _, err := unstructured.Get[any](obj, a.path[:i]...)
		if err != nil {
			return err
		}
		list, isList := parent.([]any)
		if parent != nil && !isList {
			continue // a field with such a name
		}
		if _, found, err := unstructured.Get[any](obj, a.path[:i+1]...); err != nil || found {
			if err != nil {
				return err
			}
			continue
		}
		return fmt.Errorf("%s: no element %s%s (to append one, use --append)", a.text, step, elementNames(list))
	}
	return nil
}

// elementNames formats the names of a list's elements for an error.
func elementNames(list []any) string {
	var names []string
	for _, item := range list {
		if name := nested.String(item, "name"); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": there are " + strings.Join(names, ", ")
}

// typed returns the value. A field with a text stays a text. A new field has the type of the schema, and without a schema that of
// its JSON form: invalid JSON is a string, and so are entries of an isTextMap.
func (a *Assignment) typed(obj *unstructured.Object, kind KindFunc) (any, error) {
	current, found, _ := unstructured.Get[any](obj, a.path...)
	untyped := &schema.Schema{}
	if _, isText := current.(string); isText {
		untyped.Type = "string"
	}
	if found {
		return untyped.ParseValue(a.value)
	}
	if s := kind(); s != nil {
		field, err := s.At(a.path...)
		if err != nil {
			return nil, err
		}
		value, err := field.ParseValue(a.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.text, err)
		}
		return value, nil
	}
	if a.isTextMap() {
		untyped.Type = "string"
	}
	return untyped.ParseValue(a.value)
}

// isTextMap reports whether the field is an entry of a map of strings, such as labels.
func (a *Assignment) isTextMap() bool {
	maps := []string{"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData"}
	return len(a.path) > 1 && slices.Contains(maps, a.path[len(a.path)-2])
}
