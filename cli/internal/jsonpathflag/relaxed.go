// Package jsonpathflag completes the JSONPath expressions of flags such as --sort-by.
package jsonpathflag

import (
	"errors"
	"strings"
)

// Relaxed returns the template of an expression, as kubectl's RelaxedJSONPathExpression does: x.y, .x.y and {x.y} mean {.x.y}. The
// empty expression is the empty template.
func Relaxed(expression string) (string, error) {
	if expression == "" {
		return "", nil
	}
	inner := expression
	if strings.HasPrefix(inner, "{") && strings.HasSuffix(inner, "}") {
		inner = inner[1 : len(inner)-1]
	}
	inner = strings.TrimPrefix(inner, ".")
	if inner == "" || strings.ContainsAny(inner, "{}") {
		return "", errors.New("unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'")
	}
	return "{." + inner + "}", nil
}
