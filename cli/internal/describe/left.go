package describe

import (
	"github.com/anykind/anykind/cli/internal/nested"
)

// The layouts remove the fields that they write from a copy of the object. The fields that are left follow the layout, so no field is
// missing, whatever version of Kubernetes it is from.

// pop returns the value at a path and removes it.
func pop(value any, path ...string) any {
	last := len(path) - 1
	parent := nested.Map(value, path[:last]...)
	found := parent[path[last]]
	delete(parent, path[last])
	return found
}

// popText is textAt, and removes the value.
func popText(value any, path ...string) string { return scalar(pop(value, path...)) }

// popInt is nested.Int, and removes the value.
func popInt(value any, path ...string) int64 { return nested.Int(pop(value, path...)) }

// popBool is nested.Bool, and removes the value.
func popBool(value any, path ...string) bool { return nested.Bool(pop(value, path...)) }

// popTexts returns the scalars of a list, and removes the list.
func popTexts(value any, path ...string) []string { return texts(nested.List(pop(value, path...))) }

// popPairs is pairs of the map at a path, and removes the map.
func popPairs(value any, separator string, path ...string) []string {
	return pairs(nested.Map(pop(value, path...)), separator)
}

// remaining returns what is left of a value, without fields and elements of which nothing is left. An element of a list keeps its name or
// type. isLeft is false if nothing is left.
func remaining(left, original any) (rest any, isLeft bool) {
	switch all := original.(type) {
	case map[string]any:
		fields := map[string]any{}
		for name, value := range nested.Map(left) {
			if kept, isLeft := remaining(value, all[name]); isLeft {
				fields[name] = kept
			}
		}
		return fields, len(fields) > 0 || len(all) == 0
	case []any:
		elements := []any{}
		for i, value := range nested.List(left) {
			kept, isLeft := remaining(value, all[i])
			if !isLeft {
				continue
			}
			elements = append(elements, withIdentity(kept, all[i]))
		}
		return elements, len(elements) > 0 || len(all) == 0
	default:
		return left, true
	}
}

// withIdentity adds the name or type of an element to what is left of it.
func withIdentity(left, original any) any {
	fields, isMap := left.(map[string]any)
	for _, name := range []string{"name", "type"} {
		if identity := nested.Value(original, name); isMap && identity != nil {
			fields[name] = identity
			return fields
		}
	}
	return left
}
