// Package assign applies the arguments PATH=VALUE and PATH- to objects.
package assign

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/cli/internal/nested"
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

// Apply sets or removes the field in obj. Unless canAppend is set, a list element selected by key must exist.
func (a *Assignment) Apply(obj *unstructured.Object, canAppend bool) error {
	if a.isRemove {
		_, err := unstructured.Delete(obj, a.path...)
		return err
	}
	if !canAppend {
		if err := a.checkElements(obj); err != nil {
			return err
		}
	}
	return unstructured.Set(obj, a.typed(obj), a.path...)
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

// typed returns the value as a string for a string field or an isTextMap entry. Otherwise it decodes the value as JSON. Invalid
// JSON is a string.
func (a *Assignment) typed(obj *unstructured.Object) any {
	var value any
	err := json.Unmarshal([]byte(a.value), &value)
	if text, isText := value.(string); isText && err == nil {
		return text // quoted
	}
	current, found, _ := unstructured.Get[any](obj, a.path...)
	_, isText := current.(string)
	if err != nil || isText || !found && a.isTextMap() {
		return a.value
	}
	wrapped, err := unstructured.Decode([]byte(`{"kind":"Value","apiVersion":"v1","value":` + a.value + `}`))
	if err != nil {
		return a.value
	}
	return wrapped.Object["value"] // with the number types of decoded objects
}

// isTextMap reports whether the field is an entry of a map of strings, such as labels.
func (a *Assignment) isTextMap() bool {
	maps := []string{"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData"}
	return len(a.path) > 1 && slices.Contains(maps, a.path[len(a.path)-2])
}
