package dynamic

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// FieldsError says which fields of a written object its kind does not have, or the text has twice: what Create, Update
// and Patch are refused for with FieldValidation "Strict", and Apply always. It unwraps to the server's
// *apierrors.StatusError, whose text may repeat the whole object, secrets included; this one names fields alone. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation.
type FieldsError struct {
	// Unknown and Duplicate are paths of fields: spec.template.foo. Those of a JSON patch itself begin with the number
	// of an operation: [0].value.
	Unknown, Duplicate []string
	undeclared         bool // by an apply, which servers word otherwise
	request            string
	status             *apierrors.StatusError
}

func (e *FieldsError) Error() string {
	var wrong []string
	for _, field := range e.Unknown {
		wrong = append(wrong, "unknown field "+quotedText(field))
	}
	for _, field := range e.Duplicate {
		wrong = append(wrong, "duplicate field "+quotedText(field))
	}
	if e.undeclared {
		return fmt.Sprintf("%s: %s: field not declared in schema (correct what is written)", e.request, joined(wrong))
	}
	return fmt.Sprintf("%s: strict decoding error: %s (correct what is written)", e.request, joined(wrong))
}

// Unwrap is the server's own error.
func (e *FieldsError) Unwrap() error { return e.status }

// The words that servers, kubectl and its users know these errors by.
const (
	strictError     = "strict decoding error: "
	undeclaredError = ": field not declared in schema"
)

// fieldsOf reads the fields out of a server's text, all of them or none. The text may have been made one line.
func fieldsOf(message string) (unknown, duplicate []string) {
	if list, found := behindLast(message, strictError); found {
		return strictFields(list)
	}
	if list, found := behindLast(message, "failed to create typed patch object "); found {
		return undeclared(list), nil
	}
	return nil, nil
}

// behindLast is what stands behind the last sep: before it the server may quote the object's own text.
func behindLast(s, sep string) (string, bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[i+len(sep):], true
	}
	return "", false
}

// strictField is one thing that a server finds: unknown field "a", or duplicate field "b", which its YAML parser says in
// other words.
var strictField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:, )?(?:(?:json patch )?(unknown|duplicate) field |(?:yaml: unmarshal errors:)?\s+line \d+: key )` +
		`("(?:[^"\\]|\\.)*")(?: already set in map)?`)
})

func strictFields(list string) (unknown, duplicate []string) {
	for rest := list; rest != ""; {
		field := strictField().FindStringSubmatch(rest)
		if field == nil {
			return nil, nil
		}
		if field[1] == "unknown" {
			unknown = append(unknown, unquoted(field[2]))
		} else {
			duplicate = append(duplicate, unquoted(field[2]))
		}
		rest = rest[len(field[0]):]
	}
	return unknown, duplicate
}

// undeclared reads what an apply is refused for: (namespace/name; version, Kind=Kind): .spec.foo: field not declared in
// schema; of several, each behind white space.
func undeclared(list string) (unknown []string) {
	_, list, found := strings.Cut(list, "): ")
	if !found {
		return nil
	}
	list = strings.TrimSpace(strings.TrimPrefix(list, "errors:"))
	for list != "" {
		field, rest, found := strings.Cut(list, undeclaredError)
		if !found || strings.Contains(field, ": ") || rest != "" && !strings.HasPrefix(rest, "\n") && !strings.HasPrefix(rest, " ") {
			return nil
		}
		unknown = append(unknown, strings.TrimPrefix(field, "."))
		list = strings.TrimSpace(rest)
	}
	return unknown
}
