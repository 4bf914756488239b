package gotemplate

import (
	"errors"
	"fmt"
	"reflect"
)

type kind int

const (
	otherKind kind = iota
	boolKind
	complexKind
	intKind
	floatKind
	stringKind
	uintKind
)

// number is a number by its kind.
type number struct {
	kind     kind
	integer  int64
	unsigned uint64
	float    float64
	complex  complex128
}

func numberOf(data any) number {
	switch n := data.(type) {
	case int:
		return number{kind: intKind, integer: int64(n)}
	case int64:
		return number{kind: intKind, integer: n}
	case uint8:
		return number{kind: uintKind, unsigned: uint64(n)}
	case float64:
		return number{kind: floatKind, float: n}
	case complex128:
		return number{kind: complexKind, complex: n}
	default:
		return number{}
	}
}

func kindOf(data any) kind {
	switch data.(type) {
	case bool:
		return boolKind
	case string:
		return stringKind
	default:
		return numberOf(data).kind
	}
}

var (
	errBadComparisonType = errors.New("invalid type for comparison")
	errNoComparison      = errors.New("missing argument for comparison")
)

// equal reports whether a value is equal to any of others.
func equal(v value, others ...value) (bool, error) {
	if len(others) == 0 {
		return false, errNoComparison
	}
	v = v.unbox()
	for _, other := range others {
		if is, err := isEqual(v, other.unbox()); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

func isEqual(a, b value) (bool, error) {
	kindA := kindOf(a.data)
	kindB := kindOf(b.data)
	m := numberOf(a.data)
	n := numberOf(b.data)
	switch {
	case kindA == intKind && kindB == uintKind, kindA == uintKind && kindB == intKind:
		return m.integer+int64(m.unsigned) == n.integer+int64(n.unsigned), nil //nolint:gosec // bytes
	case kindA != kindB:
		if a.isValid && b.isValid {
			return false, incompatible(a, b)
		}
		return false, nil
	case kindA != otherKind:
		return a.data == b.data || m.kind != otherKind && m == n, nil
	case !a.isValid || !b.isValid:
		return isNil(a) == isNil(b), nil
	case reflect.TypeOf(a.data) != reflect.TypeOf(b.data):
		return false, fmt.Errorf("non-comparable types %s: %v, %s: %v", a.data, a.typeName(), b.typeName(), b.data)
	case isNil(a) || isNil(b):
		return isNil(a) == isNil(b), nil
	default:
		return false, fmt.Errorf("non-comparable type %s: %v", b.data, b.typeName())
	}
}

func incompatible(a, b value) error {
	return fmt.Errorf("incompatible types for comparison: %v and %v", a.typeName(), b.typeName())
}

// isNil reports whether a value is missing, or a nil map or list.
func isNil(v value) bool {
	switch data := v.data.(type) {
	case map[string]any:
		return data == nil
	case []any:
		return data == nil
	default:
		return !v.isValid
	}
}

func isLess(a, b value) (bool, error) {
	a = a.unbox()
	b = b.unbox()
	kindA := kindOf(a.data)
	kindB := kindOf(b.data)
	m := numberOf(a.data)
	n := numberOf(b.data)
	isInteger := (kindA == intKind || kindA == uintKind) && (kindB == intKind || kindB == uintKind)
	switch {
	case kindA == otherKind || kindB == otherKind:
		return false, errBadComparisonType
	case isInteger:
		return m.integer+int64(m.unsigned) < n.integer+int64(n.unsigned), nil //nolint:gosec // bytes
	case kindA != kindB:
		return false, incompatible(a, b)
	case kindA == floatKind:
		return m.float < n.float, nil
	case kindA == stringKind:
		return a.data.(string) < b.data.(string), nil //nolint:forcetypeassert // by its kind
	default:
		return false, errBadComparisonType
	}
}

func isLessOrEqual(a, b value) (bool, error) {
	if isLess, err := isLess(a, b); isLess || err != nil {
		return isLess, err
	}
	return equal(a, b)
}
