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

// maxMismatchDepth limits the steps of the search for a mismatch: a type may contain itself, and each step converts all deeper
// values.
const maxMismatchDepth = 64

// maxExplained limits the memory, in bytes, of an object searched for a mismatch, both decoded and in its type.
const maxExplained = 32 << 20

// ofMismatch returns limits for the search for a mismatch. The search takes several times the memory of the object.
func (l Limits) ofMismatch() Limits { return Limits{Object: min(l.object()/4, maxExplained)} }

type mismatchError struct {
	text  string
	cause error
}

func (e *mismatchError) Error() string { return printable(e.text) }

func (e *mismatchError) Unwrap() error { return e.cause }

// explainMismatch returns the error for data without a conversion to type into. The JSON reader's own error has no indexes, and
// no path below a json.Unmarshaler. The value is therefore searched: the mismatch is in the first child with a failing conversion
// of its own. Data beyond the limits is not searched.
func explainMismatch(data []byte, into reflect.Type, limits Limits, cause error) error {
	v, err := limits.decode(data, reflect.New(into).Interface())
	if _, isLimit := errors.AsType[*LimitError](err); isLimit {
		return &mismatchError{cause.Error(), cause}
	}
	if err != nil {
		return err
	}
	var fields []string
	for len(fields) < maxMismatchDepth {
		field, child, childType, childCause := mismatchedChild(v, into)
		if childCause == nil {
			break
		}
		fields = append(fields, field)
		v = child
		cause = childCause
		if childType == nil {
			return &mismatchError{fmt.Sprintf("%s: %v", pathText(fields), cause), cause}
		}
		into = childType
		if alone := fits(v, into); alone != nil {
			cause = alone // the parent's error names the parent
		}
	}
	if mismatch, ok := errors.AsType[*stdjson.UnmarshalTypeError](cause); ok && len(fields) == 0 && mismatch.Field != "" {
		// The decoded value fits: 1.0 is encoded as 1.
		return &mismatchError{fmt.Sprintf(".%s: is %s, not %s", mismatch.Field, mismatch.Value, mismatch.Type), cause}
	}
	return &mismatchError{pathText(fields) + ": " + mismatchReason(v, cause), cause}
}

func mismatchReason(v any, cause error) string {
	mismatch, ok := errors.AsType[*stdjson.UnmarshalTypeError](cause)
	if !ok || mismatch.Field != "" {
		return cause.Error()
	}
	if n, ok := v.(int64); ok && mismatch.Value == "number "+strconv.FormatInt(n, 10) && isInteger(mismatch.Type.Kind()) {
		return fmt.Sprintf("%d does not fit into %s", n, mismatch.Type)
	}
	return fmt.Sprintf("is %s, not %s", typeName(v), mismatch.Type)
}

func isInteger(kind reflect.Kind) bool { return reflect.Int <= kind && kind <= reflect.Uintptr }

// mismatchedChild returns the first child of v with a failing conversion, and the conversion's error. childType is nil if it is
// unknown. cause is nil if there is no such child.
func mismatchedChild(v any, into reflect.Type) (field string, child any, childType reflect.Type, cause error) {
	for into.Kind() == reflect.Pointer && !isUnmarshaler(into) {
		into = into.Elem()
	}
	if isUnmarshaler(reflect.PointerTo(into)) {
		return "", nil, nil, nil
	}
	switch v := v.(type) {
	case map[string]any:
		if into.Kind() != reflect.Map && into.Kind() != reflect.Struct {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := fits(map[string]any{name: v[name]}, into); err != nil {
				return name, v[name], memberType(into, name), err
			}
		}
	case []any:
		if into.Kind() != reflect.Slice && into.Kind() != reflect.Array {
			break
		}
		for i, element := range v {
			if err := fits(element, into.Elem()); err != nil {
				return strconv.Itoa(i), element, into.Elem(), err
			}
		}
	}
	return "", nil, nil, nil
}

func fits(v any, into reflect.Type) error {
	data, err := encodeValue(v, 0)
	if err != nil {
		return err
	}
	return json.UnmarshalCaseSensitivePreserveInts(data, reflect.New(into).Interface())
}

// memberType returns the type of a member of into, a map or struct. It returns nil for an unknown member.
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
