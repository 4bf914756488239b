package managedfields

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Remove removes the paths of fields from an object. A map or list item goes with its content, unless kept has a path in it. A kept
// item keeps its key.
func Remove(obj map[string]any, fields, kept map[string]any) { remove(obj, fields, kept) }

// remove returns the value without the paths: lists are new.
func remove(value any, fields, kept map[string]any) any {
	for _, name := range slices.SortedFunc(maps.Keys(fields), compareDescending) {
		below, found := element(value, name)
		if !found {
			continue
		}
		child, _ := fields[name].(map[string]any)
		keptBelow, isKept := kept[name].(map[string]any)
		if isMember(child) && !isKept {
			value = replace(value, name, nil)
		} else {
			value = replace(value, name, remove(below, withoutKey(child, name), keptBelow))
		}
	}
	return value
}

// compareDescending sorts a larger index, i:10, before a smaller one: the removal of an item changes the indexes behind it.
func compareDescending(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a))
}

// withoutKey returns the paths in a list item without the fields of its key.
func withoutKey(fields map[string]any, name string) map[string]any {
	text, isItem := strings.CutPrefix(name, "k:")
	if !isItem {
		return fields
	}
	key, _ := Decode(text).(map[string]any)
	fields = maps.Clone(fields)
	maps.DeleteFunc(fields, func(field string, _ any) bool {
		_, isKey := key[strings.TrimPrefix(field, "f:")]
		return isKey
	})
	return fields
}

// replace replaces the element of a path below a value. nil removes it.
func replace(value any, name string, with any) any {
	if fields, isMap := value.(map[string]any); isMap {
		if fields[name[2:]] = with; with == nil {
			delete(fields, name[2:])
		}
		return fields
	}
	list, _ := value.([]any)
	i := position(list, name)
	if with == nil {
		return slices.Concat(list[:i], list[i+1:])
	}
	list[i] = with
	return list
}
