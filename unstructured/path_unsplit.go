package unstructured

import (
	"fmt"
	"strconv"
	"strings"
)

// checkUnsplit returns an error if name, a field that an object lacks, is a whole path in one string: "spec.replicas"
// where "spec", "replicas" is meant. isCollection reports whether the object has a map or list of a name. Only the first
// step of a path is checked: no kind has top-level fields with dots, but labels and data have.
func checkUnsplit(name string, isCollection func(name string) bool) error {
	if !strings.ContainsAny(name, ".[") {
		return nil
	}
	first := strings.TrimPrefix(strings.TrimPrefix(name, "{"), ".")
	end := strings.IndexAny(first, ".[")
	if end <= 0 {
		return nil
	}
	switch first = first[:end]; first {
	case "metadata", "spec", "status":
	default:
		if !isCollection(first) {
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

// checkUnsplitIn is checkUnsplit for a decoded object.
func checkUnsplitIn(obj map[string]any, name string) error {
	if _, found := obj[name]; found {
		return nil
	}
	return checkUnsplit(name, func(name string) bool { return isCollection(obj[name]) })
}
