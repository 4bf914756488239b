package unstructured

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// step formats a step of a path for an error's text: .spec, [2], [name=app], ["a.b/c"]. ParsePath parses it.
func step(field string) string {
	if isIndex(field) {
		return "[" + field + "]"
	}
	if field == wildcard || isSelector(field) {
		return field
	}
	if field == "" || strings.ContainsFunc(field, needsQuotes) {
		return "[" + strconv.Quote(field) + "]"
	}
	return "." + field
}

const digits = "0123456789"

func isIndex(field string) bool { return field != "" && strings.Trim(field, digits) == "" }

func needsQuotes(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' && c != '$'
}

// pathText formats a path for an error's text: .spec.containers[0].image; the whole object is ".".
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

// typeName returns the name of a value's type, as in the package's documentation.
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

func typeMismatch(fields []string, v any, want string) error {
	return fmt.Errorf("%s: is %s, not %s", pathText(fields), typeName(v), want)
}

// checkUnsplit returns an error if the missing field name is a whole path, such as "spec.replicas" instead of "spec", "replicas".
// Only the first step of a path is checked: no kind has top-level fields with dots, but labels and data have.
func checkUnsplit(obj map[string]any, name string) error {
	if _, found := obj[name]; found || !strings.ContainsAny(name, ".[") {
		return nil
	}
	first := strings.TrimPrefix(strings.TrimPrefix(name, "{"), ".")
	end := strings.IndexAny(first, ".[")
	if end <= 0 {
		return nil
	}
	first = first[:end]
	switch obj[first].(type) {
	case map[string]any, []any:
	default:
		if !slices.Contains([]string{"metadata", "spec", "status"}, first) {
			return nil
		}
	}
	hint := "ParsePath splits a path"
	if fields, err := ParsePath(name); err == nil {
		quoted := make([]string, len(fields))
		for i, field := range fields {
			quoted[i] = strconv.Quote(field)
		}
		hint = "each field is an argument of its own: " + strings.Join(quoted, ", ")
	}
	return fmt.Errorf("%s: no such field (%s)", step(name), hint)
}
