package unstructured

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/json"
)

// misfitDepth is how many steps a misfit is looked for: a type may hold itself, and each step reads what is below.
const misfitDepth = 64

// misfitError says which value does not fit into its type.
type misfitError struct {
	text  string
	cause error
}

func (e *misfitError) Error() string { return printable(e.text) }

func (e *misfitError) Unwrap() error { return e.cause }

// misfit explains why data cannot be read as T. The JSON reader's own error has no indexes and names no path where a
// type unmarshals itself, so the value is looked for: it is in that child which cannot be read alone either.
func misfit(data []byte, into reflect.Type, cause error) error {
	v, err := decodeValue(slices.Clip(data))
	if err != nil {
		return err
	}
	var fields []string
	for len(fields) < misfitDepth {
		field, child, childType, childCause := misfitChild(v, into)
		if childCause == nil {
			break
		}
		fields, v, cause = append(fields, field), child, childCause
		if childType == nil {
			return &misfitError{fmt.Sprintf("%s: %v", pathText(fields), cause), cause}
		}
		into = childType
		if alone := fits(v, into); alone != nil {
			cause = alone // the parent's error names the parent
		}
	}
	var mismatch *stdjson.UnmarshalTypeError
	if len(fields) == 0 && errors.As(cause, &mismatch) && mismatch.Field != "" {
		// It fits once it is decoded, as 1.0 does.
		return &misfitError{fmt.Sprintf(".%s: is %s, not %s", mismatch.Field, mismatch.Value, mismatch.Type), cause}
	}
	return &misfitError{pathText(fields) + ": " + misfitReason(v, cause), cause}
}

func misfitReason(v any, cause error) string {
	var mismatch *stdjson.UnmarshalTypeError
	if !errors.As(cause, &mismatch) || mismatch.Field != "" {
		return cause.Error()
	}
	if n, ok := v.(int64); ok && mismatch.Value == "number "+strconv.FormatInt(n, 10) && isInteger(mismatch.Type.Kind()) {
		return fmt.Sprintf("%d does not fit into %s", n, mismatch.Type)
	}
	return fmt.Sprintf("is %s, not %s", typeName(v), mismatch.Type)
}

func isInteger(kind reflect.Kind) bool { return reflect.Int <= kind && kind <= reflect.Uintptr }

// misfitChild finds the first child of v, which does not fit into a type, that does not fit itself, and why.
// Its type is nil if it is not known.
func misfitChild(v any, into reflect.Type) (field string, child any, childType reflect.Type, cause error) {
	for into.Kind() == reflect.Pointer && !unmarshalsItself(into) {
		into = into.Elem()
	}
	if unmarshalsItself(reflect.PointerTo(into)) {
		return "", nil, nil, nil
	}
	switch v := v.(type) {
	case map[string]any:
		if into.Kind() != reflect.Map && into.Kind() != reflect.Struct {
			return "", nil, nil, nil
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := fits(map[string]any{name: v[name]}, into); err != nil {
				return name, v[name], memberType(into, name), err
			}
		}
	case []any:
		if into.Kind() != reflect.Slice && into.Kind() != reflect.Array {
			return "", nil, nil, nil
		}
		for i, element := range v {
			if err := fits(element, into.Elem()); err != nil {
				return strconv.Itoa(i), element, into.Elem(), err
			}
		}
	}
	return "", nil, nil, nil
}

// fits reads v as a type.
func fits(v any, into reflect.Type) error {
	data, err := Encode(&Object{Object: map[string]any{"": v}})
	if err != nil {
		return err
	}
	return json.UnmarshalCaseSensitivePreserveInts(data[len(`{"":`):len(data)-len("}")], reflect.New(into).Interface())
}

func unmarshalsItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[stdjson.Unmarshaler]())
}

// memberType is the type of a member of into, a map or struct; nil if that is not known.
func memberType(into reflect.Type, name string) reflect.Type {
	switch into.Kind() {
	case reflect.Map:
		return into.Elem()
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(into) {
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.IsExported() && (tag == name || tag == "" && field.Name == name) {
				return field.Type
			}
		}
	default:
	}
	return nil
}
