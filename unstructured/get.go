package unstructured

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Get reads the value at a path of field names. At a list, "0", "1" … are indexes, and "[name=app]" selects the first element
// whose name is "app"; "[containerPort=80,protocol=TCP]" compares several keys. A number or bool is written as in JSON. A string
// is quoted if it has special characters or could be read as a number or bool: "[name=\"a,b\"]". At a map every step is a literal
// field name. Only "[*]" is an error: use [GetAll]. [ParsePath] splits a text into steps.
//
// obj is an *Object or a *[Lazy], with the same result. For a Lazy, only that value is decoded.
//
// T is string, bool, int64, int, float64, []any, map[string]any, []string, map[string]string, or any. The value is a copy:
// changing it does not change obj, and vice versa. An integer reads as a float64 if the conversion is exact, since JSON writes
// 1.0 as 1; a float64 never reads as an integer. An integer outside the range of int (32 bits on some platforms) is an error. A
// different T is an error. For a float32 or int32, read a float64 or int64 and convert it, with rounding or truncation; [As]
// rejects numbers outside the range of such a field. Integers of further Go types, never returned by [Decode] but possibly set in
// obj.Object, can be read as integers. All values of such types can be read as any, without a copy.
//
// found is false if a field is missing or null, an index is past the end, no element has the keys, or obj is nil. A value, or a
// field along the path, of an unexpected type is an error with its path and both types: ".spec.replicas: is string, not int64". A
// whole path as the first field, "spec.replicas", is an error if obj has no field of that name.
func Get[T any, O *Object | *Lazy](obj O, fields ...string) (value T, found bool, err error) {
	if err := checkSingle(fields); err != nil {
		return value, false, err
	}
	v, found, err := valueAt(obj, fields)
	if err != nil || !found {
		return value, false, err
	}
	if err := store(&value, v, fields); err != nil {
		var none T
		return none, false, err
	}
	return value, true, nil
}

// valueAt returns the value at a path of an object. The value is shared if the object is decoded. A whole path as the first field
// is an error.
func valueAt[O *Object | *Lazy](obj O, fields []string) (v any, found bool, err error) {
	if isNil(obj) {
		return nil, false, nil
	}
	switch obj := any(obj).(type) {
	case *Object:
		v, found, err = walk(obj.Object, fields, 0)
		if err == nil && !found {
			err = checkUnsplit(obj.Object, fields[0])
		}
	case *Lazy:
		v, found, err = obj.walk(fields)
		if err == nil && !found && strings.ContainsAny(fields[0], ".[") { // decoded for an error alone
			whole, _ := obj.Object() // decodable, because walk succeeded
			err = checkUnsplit(whole.Object, fields[0])
		}
	}
	return v, found, err
}

// walk follows fields[done:] from v, the value at fields[:done].
func walk(v any, fields []string, done int) (any, bool, error) {
	for i := done; i < len(fields); i++ {
		field := fields[i]
		switch parent := v.(type) {
		case map[string]any:
			v = parent[field]
		case []any:
			at, err := elementIndex(parent, fields, i)
			if err != nil || at < 0 || at >= len(parent) {
				return nil, false, err
			}
			v = parent[at]
		default:
			return nil, false, fmt.Errorf("%s: is %s, not map[string]any or []any", pathText(fields[:i]), typeName(v))
		}
		if v == nil {
			return nil, false, nil
		}
	}
	return v, true, nil
}

// elementIndex returns the index of the element of list selected by fields[i]. list is at fields[:i]. The index may be past the
// end, and is -1 if no element has the keys.
func elementIndex(list []any, fields []string, i int) (int, error) {
	if isIndex(fields[i]) {
		at, err := strconv.Atoi(fields[i])
		if err != nil {
			at = math.MaxInt // overflow: past the end
		}
		return at, nil
	}
	keys, err := selectorOf(fields, i)
	if err != nil {
		return -1, err
	}
	return keys.index(list), nil
}

// selectorOf parses fields[i] as a selector of list elements.
func selectorOf(fields []string, i int) (selector, error) {
	if !strings.HasPrefix(fields[i], "[") {
		return nil, fmt.Errorf("%s: is []any, which has no field %q", pathText(fields[:i]), fields[i])
	}
	keys, err := parseSelector(fields[i])
	if err != nil {
		return nil, fmt.Errorf("%s: is []any, whose by-key step cannot be read: %w", pathText(fields[:i]), err)
	}
	return keys, nil
}

// store sets *target to v. target is Get's *T.
func store(target, v any, fields []string) error {
	ok := true
	switch target := target.(type) {
	case *any:
		*target = copyValue(v)
	case *string:
		*target, ok = v.(string)
	case *bool:
		*target, ok = v.(bool)
	case *int64:
		*target, ok = integer(v)
	case *int:
		var n int64
		n, ok = integer(v)
		*target = int(n)
		ok = ok && int64(int(n)) == n
	case *float64:
		*target, ok = float(v)
	case *[]any:
		*target, ok = copyValue(v).([]any)
	case *map[string]any:
		*target, ok = copyValue(v).(map[string]any)
	case *[]string:
		return storeStrings(target, v, fields)
	case *map[string]string:
		return storeStringMap(target, v, fields)
	default:
		return fmt.Errorf("%s: Get cannot read %s; read any and convert", pathText(fields), targetType(target))
	}
	if !ok {
		return typeMismatch(fields, v, targetType(target))
	}
	return nil
}

func storeStrings(target *[]string, v any, fields []string) error {
	list, ok := v.([]any)
	if !ok {
		return typeMismatch(fields, v, "[]string")
	}
	*target = make([]string, len(list))
	for i, element := range list {
		if (*target)[i], ok = element.(string); !ok {
			return typeMismatch(slices.Concat(fields, []string{strconv.Itoa(i)}), element, "string")
		}
	}
	return nil
}

func storeStringMap(target *map[string]string, v any, fields []string) error {
	m, ok := v.(map[string]any)
	if !ok {
		return typeMismatch(fields, v, "map[string]string")
	}
	*target = make(map[string]string, len(m))
	for name, element := range m {
		if (*target)[name], ok = element.(string); !ok {
			return typeMismatch(slices.Concat(fields, []string{name}), element, "string")
		}
	}
	return nil
}

func targetType(target any) string {
	return strings.ReplaceAll(fmt.Sprintf("%T", target)[len("*"):], "interface {}", "any")
}

// integer returns the value of any predeclared Go integer type, but not of a named type.
func integer(v any) (int64, bool) {
	if n, ok := v.(int64); ok || v == nil {
		return n, ok
	}
	rv := reflect.ValueOf(v)
	switch {
	case rv.Type().PkgPath() != "" || rv.Kind() == reflect.Uintptr:
		return 0, false
	case rv.CanInt():
		return rv.Int(), true
	case rv.CanUint():
		return int64(rv.Uint()), rv.Uint() <= math.MaxInt64 //nolint:gosec // checked
	default:
		return 0, false
	}
}

func float(v any) (float64, bool) {
	switch f := v.(type) {
	case float64:
		return f, true
	case float32:
		return float64(f), true
	}
	n, ok := integer(v)
	f := float64(n)
	// 1<<63 as a float64 would overflow on the way back.
	return f, ok && f < math.MaxInt64 && int64(f) == n
}

// copyValue copies maps and lists. All remaining values are immutable.
func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for name := range out {
			out[name] = copyValue(out[name])
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = copyValue(out[i])
		}
		return out
	default:
		return v
	}
}
