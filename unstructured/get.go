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

// Get reads the value at a path of field names. At a list, "0", "1" … are indexes, and "[name=app]" selects the first
// element whose name is "app"; "[containerPort=80,protocol=TCP]" compares several keys. A number or bool is written as in
// JSON, and a text with special characters, or one that must not be read as a number or bool, in quotes:
// "[name=\"a,b\"]". At a map every step is a field's name, whatever it looks like, but for "[*]", which is an error:
// [GetAll] reads it. [ParsePath] splits a text into steps.
//
// obj is an *Object or a *[Lazy]. Both give the same result; of a Lazy no more is decoded than that value.
//
// T is string, bool, int64, int, float64, []any, map[string]any, []string, map[string]string, or any. The value is
// a copy: changing it does not change obj, nor the other way round. An integer reads as a float64 if that
// is exact, since JSON writes 1.0 as 1; never the other way round. An integer that does not fit into int, which has 32 bits on
// some platforms, is an error, and so is any other T: for a float32 or an int32, read float64 or int64 and convert the value,
// which rounds or cuts off; [As] rejects numbers beyond the range of a field of these types. Of values that [Decode] never returns, but a program may
// have put into obj, integers of other Go types read as well; the rest reads as any only, and is not copied.
//
// found is false if a field is missing or null, an index is past the end, no element has the keys, or obj is nil. A
// value, or a field on the way, of another type is an error that names its path and both types: ".spec.replicas: is
// string, not int64". So is a whole path given as the first field, "spec.replicas", if obj has no field of that name.
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

// valueAt returns the value at a path of an object, which is shared if the object is decoded. A path that is given as one
// field is an error.
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
		if err == nil && !found && strings.ContainsAny(fields[0], ".[") { // it is decoded for an error alone
			whole, _ := obj.Object() // it can be decoded if it can be walked
			err = checkUnsplit(whole.Object, fields[0])
		}
	}
	return v, found, err
}

// walk follows fields[done:] from v, which is at fields[:done].
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

// elementIndex returns the index of the element of list, which is at fields[:i], that fields[i] selects. It may be past
// the end, and is -1 if no element has the keys.
func elementIndex(list []any, fields []string, i int) (int, error) {
	if isIndex(fields[i]) {
		at, err := strconv.Atoi(fields[i])
		if err != nil {
			at = math.MaxInt // it overflows, and so is past the end
		}
		return at, nil
	}
	keys, err := selectorOf(fields, i)
	if err != nil {
		return -1, err
	}
	return keys.index(list), nil
}

// selectorOf parses fields[i], a step at a list that is not an index.
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

// store sets what target points to, a *T of Get's, to v.
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
		*target, ok = int(n), ok && int64(int(n)) == n
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

// integer returns the value of any of Go's integer types, but of no type derived from one.
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

// copyValue copies maps and lists; of other values there is one.
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
