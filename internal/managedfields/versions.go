package managedfields

import (
	"reflect"
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
	kind, text, _ := strings.Cut(name, ":")
	fields, _ := value.(map[string]any)
	list, _ := value.([]any)
	switch kind {
	case "f":
		below, found := fields[text]
		return below, found
	case "i":
		if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(list) {
			return list[i], true
		}
	case "k":
		key, isMap := Decode(text).(map[string]any)
		for _, item := range list {
			if isMap && hasKey(item, key) {
				return item, true
			}
		}
	case "v":
		element := Decode(text)
		for _, item := range list {
			if element != nil && reflect.DeepEqual(item, element) {
				return item, true
			}
		}
	}
	return nil, false
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
