package unstructured

import (
	"fmt"
	"strconv"
	"strings"
)

// step writes one step of a path for an error's text: .spec, [2], [name=app], ["a.b/c"]. ParsePath reads it back.
func step(field string) string {
	if isIndex(field) {
		return "[" + field + "]"
	}
	if isSelector(field) {
		return field
	}
	if field == "" || strings.ContainsFunc(field, isNoIdentifier) {
		return "[" + strconv.Quote(field) + "]"
	}
	return "." + field
}

func isIndex(field string) bool { return field != "" && countDigits([]byte(field)) == len(field) }

func isNoIdentifier(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' && c != '$'
}

// pathText writes a path for an error's text: .spec.containers[0].image; the whole object is ".".
func pathText(fields []string) string {
	var b strings.Builder
	for _, field := range fields {
		b.WriteString(step(field))
	}
	switch {
	case b.Len() == 0:
		return "."
	case b.Len() > maxText:
		return printable(b.String())
	default:
		return b.String()
	}
}

// typeName names a value's type as this package's documentation does.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "map[string]any"
	case []any:
		return "[]any"
	default:
		return fmt.Sprintf("%T", v)
	}
}
