// Package fieldowner finds the field managers of an object's fields in metadata.managedFields. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
package fieldowner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// Owner is a field with its manager.
type Owner struct {
	// Field is the path of the field, in the syntax of unstructured.ParsePath.
	Field string
	// Manager has owned the field since Time. Operation is Apply or Update. Subresource is "" for a write of the object itself.
	Manager, Operation, Subresource, APIVersion string
	Time                                        time.Time
}

// Owners returns the owners of the field at a path and of all fields below it. Without such owners it returns the owners of an
// enclosing field owned as a whole, such as an atomic list. An empty path means all fields. A missing field is an error.
func Owners(obj *unstructured.Object, path []string) ([]Owner, error) {
	if len(path) > 0 {
		if _, found, err := unstructured.Get[any](obj, path...); err != nil {
			return nil, err
		} else if !found {
			return nil, fmt.Errorf("%s %q has no field %s", obj.GetKind(), obj.GetName(), strings.Join(path, "."))
		}
	}
	var owners, wholes []Owner
	for _, entry := range obj.GetManagedFields() {
		owner := Owner{Manager: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource, APIVersion: entry.APIVersion}
		if entry.Time != nil {
			owner.Time = entry.Time.Time
		}
		if entry.FieldsV1 == nil {
			continue
		}
		var set map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set); err != nil {
			return nil, fmt.Errorf("decode the managed fields of %q: %w", entry.Manager, err)
		}
		w := &walker{path: path}
		w.walk(set, obj.Object, "", 0)
		for _, field := range w.found {
			owner.Field = field
			owners = append(owners, owner)
		}
		if w.whole != "" {
			owner.Field = w.whole
			wholes = append(wholes, owner)
		}
	}
	if len(owners) == 0 {
		return wholes, nil
	}
	return owners, nil
}

// walker finds the members of a field set at or below a path.
type walker struct {
	path  []string
	found []string
	// whole is a member above path without its own members: it is owned as a whole.
	whole string
}

// walk visits the members of a set. value is the object's value at the path at. depth is the number of matched steps of w.path.
func (w *walker) walk(set map[string]any, value any, at string, depth int) {
	isLeaf := true
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if key == "." { // the field itself, in addition to its members
			continue
		}
		isLeaf = false
		if step, next, matches := w.step(key, value, depth); matches {
			w.walk(nested.Map(set, key), next, at+step, min(depth+1, len(w.path)))
		}
	}
	switch at = strings.TrimPrefix(at, "."); {
	case at == "" || !isLeaf:
	case depth == len(w.path):
		w.found = append(w.found, at)
	case len(set) == 0:
		w.whole = at
	}
}

// step returns the path step of a member, the member's value, and whether the member is on or below w.path.
func (w *walker) step(key string, value any, depth int) (step string, next any, matches bool) {
	wanted := ""
	isBelow := depth == len(w.path)
	if !isBelow {
		wanted = w.path[depth]
	}
	kind, name, _ := strings.Cut(key, ":")
	switch kind {
	case "f":
		return fieldStep(name), nested.Value(value, name), isBelow || wanted == name
	case "k":
		return keyStep(name, value, wanted, isBelow)
	case "i":
		list := nested.List(value)
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(list) {
			next = list[i]
		}
		return "[" + name + "]", next, isBelow || wanted == name
	default: // v: a value of a set
		return valueStep(name, value, wanted, isBelow)
	}
}

// keyStep is step for a list element identified by keys.
func keyStep(name string, value any, wanted string, isBelow bool) (step string, next any, matches bool) {
	var keys map[string]any
	if json.Unmarshal([]byte(name), &keys) != nil {
		return "[" + name + "]", nil, false
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		parts = append(parts, key+"="+keyText(keys[key]))
	}
	step = "[" + strings.Join(parts, ",") + "]"
	list := nested.List(value)
	index := slices.IndexFunc(list, func(element any) bool { return hasKeys(element, keys) })
	if index >= 0 {
		next = list[index]
	}
	if isBelow {
		return step, next, true
	}
	return step, next, index >= 0 && selected(list, wanted) == index
}

// valueStep is step for a list element identified by its value.
func valueStep(name string, value any, wanted string, isBelow bool) (step string, next any, matches bool) {
	list := nested.List(value)
	index := slices.IndexFunc(list, func(element any) bool {
		text, err := json.Marshal(element)
		return err == nil && string(text) == name
	})
	if index >= 0 {
		next = list[index]
	}
	step = fmt.Sprintf("[%d]", index)
	if index < 0 {
		step = "[" + name + "]"
	}
	return step, next, isBelow || index >= 0 && selected(list, wanted) == index
}

// selected returns the index of the element selected by a path step, or -1.
func selected(list []any, step string) int {
	if index, err := strconv.Atoi(step); err == nil {
		return index
	}
	holder := &unstructured.Object{Object: map[string]any{"list": list}}
	for i, element := range list {
		found, ok, err := unstructured.Get[any](holder, "list", step)
		if err != nil || !ok {
			return -1
		}
		if equal(found, element) {
			return i
		}
	}
	return -1
}

func equal(a, b any) bool {
	left, err := json.Marshal(a)
	if err != nil {
		return false
	}
	right, err := json.Marshal(b)
	return err == nil && string(left) == string(right)
}

// hasKeys reports whether a list element matches keys. A missing key matches: it had its default.
func hasKeys(element any, keys map[string]any) bool {
	fields, ok := element.(map[string]any)
	if !ok {
		return false
	}
	for key, want := range keys {
		if value, ok := fields[key]; ok && !equal(value, want) {
			return false
		}
	}
	return true
}

// fieldStep returns a field name as a path step.
func fieldStep(name string) string {
	if strings.ContainsAny(name, `./[]{}"'=\ `) || name == "" {
		return "[" + strconv.Quote(name) + "]"
	}
	return "." + name
}

// keyText returns the value of a key in the syntax of a path step.
func keyText(value any) string {
	text, ok := value.(string)
	if !ok {
		data, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		return string(data)
	}
	_, isNumber := strconv.ParseFloat(text, 64)
	if strings.ContainsAny(text, `,[]"'\= `) || isNumber == nil || text == "true" || text == "false" || text == "" {
		return strconv.Quote(text)
	}
	return text
}
