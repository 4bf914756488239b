package managedfields

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/json"
)

// split divides the paths of an object by their values in two versions of the object: equal values, and different values. Paths
// without a value in both versions are dropped.
func split(fields map[string]any, from, to any) (same, different map[string]any) {
	same = map[string]any{}
	different = map[string]any{}
	for name, value := range fields {
		child, _ := value.(map[string]any)
		if name == self {
			continue
		}
		fromValue, inFrom := element(from, name)
		toValue, inTo := element(to, name)
		sameBelow, differentBelow := split(child, fromValue, toValue)
		isSame := inFrom && inTo && reflect.DeepEqual(fromValue, toValue)
		if HasElements(child) { // the members of the map or list are compared on their own
			isSame = inFrom && inTo && reflect.TypeOf(fromValue) == reflect.TypeOf(toValue)
		}
		add(same, name, sameBelow, isMember(child) && isSame)
		add(different, name, differentBelow, isMember(child) && !isSame && (inFrom || inTo))
	}
	return same, different
}

// element returns the value of an element of a path below a value.
func element(value any, name string) (any, bool) {
	if text, isField := strings.CutPrefix(name, "f:"); isField {
		fields, _ := value.(map[string]any)
		below, found := fields[text]
		return below, found
	}
	list, _ := value.([]any)
	if i := position(list, name); i >= 0 {
		return list[i], true
	}
	return nil, false
}

// position returns the index of an element of a path in a list, and -1 without it.
func position(list []any, name string) int {
	kind, text, _ := strings.Cut(name, ":")
	switch kind {
	case "i":
		if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(list) {
			return i
		}
	case "k":
		if key, isMap := Decode(text).(map[string]any); isMap {
			return slices.IndexFunc(list, func(item any) bool { return hasKey(item, key) })
		}
	case "v":
		if value := Decode(text); value != nil {
			return slices.IndexFunc(list, func(item any) bool { return reflect.DeepEqual(item, value) })
		}
	}
	return -1
}

// Decode decodes the JSON in an element of a path, with integers as int64. It returns nil for anything else.
func Decode(text string) any {
	var value any
	if json.UnmarshalCaseSensitivePreserveInts([]byte(text), &value) != nil {
		return nil
	}
	return value
}

func hasKey(item any, key map[string]any) bool {
	fields, isMap := item.(map[string]any)
	for name, value := range key {
		if field, found := fields[name]; !found || !reflect.DeepEqual(field, value) {
			return false
		}
	}
	return isMap
}
