package unstructured

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// wildcard selects every element of a list or every field of a map. Only GetAll accepts it.
const wildcard = "[*]"

// GetAll reads all values at a path with the step "[*]". It selects every element of a list, in order, or every field of a map,
// sorted by name: GetAll[string](obj, "spec", "containers", "[*]", "image"). The same path for [ParsePath] is
// .spec.containers[*].image. A path may have any number of wildcards. All remaining steps, and T, are as for [Get].
//
// Values not found by [Get], for example because an element lacks the field, are omitted. A value, or a field along the path, of
// an unexpected type is an error with its path: ".spec.containers[1].image: is int64, not string". For a *[Lazy], only the list
// or map at the first "[*]" is decoded. The values are copies.
func GetAll[T any, O *Object | *Lazy](obj O, fields ...string) ([]T, error) {
	first := slices.Index(fields, wildcard)
	if first < 0 {
		first = len(fields)
	}
	parent, found, err := valueAt(obj, fields[:first])
	if err != nil || !found {
		return nil, err
	}
	var values []T
	err = expand(parent, fields, first, func(v any, path []string) error {
		var value T
		if err := store(&value, v, path); err != nil {
			return err
		}
		values = append(values, value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}

// expand calls emit with each value selected by fields[done:] from v, and the value's path. v is at fields[:done].
func expand(v any, fields []string, done int, emit func(v any, path []string) error) error {
	next := slices.Index(fields[done:], wildcard)
	if next < 0 {
		v, found, err := walk(v, fields, done)
		if err != nil || !found {
			return err
		}
		return emit(v, fields)
	}
	next += done
	v, found, err := walk(v, fields[:next], done)
	if err != nil || !found || v == nil {
		return err
	}
	// The path of an element has its index or name in place of the wildcard.
	child := func(v any, name string) error {
		if v == nil {
			return nil
		}
		return expand(v, slices.Concat(fields[:next], []string{name}, fields[next+1:]), next+1, emit)
	}
	switch parent := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(parent)) {
			if err := child(parent[name], name); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range parent {
			if err := child(element, strconv.Itoa(i)); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%s: is %s, not map[string]any or []any", pathText(fields[:next]), typeName(v))
	}
	return nil
}

// checkSingle rejects a wildcard.
func checkSingle(fields []string) error {
	if at := slices.Index(fields, wildcard); at >= 0 {
		return fmt.Errorf("%s: [*] selects more than one value (GetAll reads them)", pathText(fields[:at]))
	}
	return nil
}
