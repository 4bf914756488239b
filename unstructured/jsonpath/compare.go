package jsonpath

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// compare reports whether an operator of a filter holds for left and right.
func compare(left any, operator string, right any) (bool, error) {
	if isBool(left) && isBool(right) {
		switch operator {
		case "==":
			return left == right, nil
		case "!=":
			return left != right, nil
		default:
			return false, fmt.Errorf("invalid type for comparison: bools have no order (operator %s)", operator)
		}
	}
	order, err := orderOf(left, right)
	if err != nil {
		return false, err
	}
	switch operator {
	case "==":
		return order == 0, nil
	case "!=":
		return order != 0, nil
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	default:
		return order >= 0, nil
	}
}

func isBool(v any) bool {
	_, is := v.(bool)
	return is
}

// orderOf compares two texts or two numbers, like cmp.Compare.
func orderOf(left, right any) (int, error) {
	leftText, leftIsText := left.(string)
	rightText, rightIsText := right.(string)
	if leftIsText && rightIsText {
		return strings.Compare(leftText, rightText), nil
	}
	leftNumber, leftIsNumber := numberOf(left)
	rightNumber, rightIsNumber := numberOf(right)
	if leftIsNumber && rightIsNumber {
		return leftNumber.compare(rightNumber), nil
	}
	kinds := []string{kindOf(left), kindOf(right)}
	for _, kind := range kinds {
		if !slices.Contains([]string{"a string", "a number", "a bool"}, kind) {
			return 0, errors.New("invalid type for comparison: only texts, numbers and bools can be compared")
		}
	}
	return 0, fmt.Errorf("incompatible types for comparison: %s", strings.Join(kinds, " and "))
}

// number is an integer or, if isFloat, a float.
type number struct {
	integer int64
	float   float64
	isFloat bool
}

// numberOf returns a number of any Go type. A uint64 above the largest int64 is a float.
func numberOf(v any) (number, bool) {
	switch rv := reflect.ValueOf(v); {
	case rv.CanInt():
		return number{integer: rv.Int(), float: float64(rv.Int())}, true
	case rv.CanUint():
		n := rv.Uint()
		return number{integer: int64(n), float: float64(n), isFloat: n > math.MaxInt64}, true //nolint:gosec // else not read
	case rv.CanFloat():
		return number{float: rv.Float(), isFloat: true}, true
	default:
		return number{}, false
	}
}

func (n number) compare(other number) int {
	if n.isFloat || other.isFloat {
		return cmp.Compare(n.float, other.float)
	}
	return cmp.Compare(n.integer, other.integer)
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a bool"
	default:
		if _, isNumber := numberOf(v); isNumber {
			return "a number"
		}
		return fmt.Sprintf("a %T", v)
	}
}
