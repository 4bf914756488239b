package readiness

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// object reads fields for the rules. Rules go on with the zero value of a field of an unexpected type.
type object struct {
	value   func(fields ...string) (any, bool, error)
	text    func(fields ...string) (string, bool, error)
	integer func(fields ...string) (int64, bool, error)

	allConditions []condition // of status.conditions, once hasConditions
	hasConditions bool

	observations []string // fields of an unexpected type
	isBuiltin    bool     // a field of an unexpected type makes the status Unknown
	err          error    // the first error of a built-in kind
	badField     string   // its path
}

// fail handles a field of an unexpected type.
func (o *object) fail(path string, err error) {
	switch {
	case err == nil:
	case !o.isBuiltin:
		if text := err.Error(); !slices.Contains(o.observations, text) {
			o.observations = append(o.observations, text)
		}
	case o.err == nil:
		o.err = err
		o.badField = path
	}
}

func (o *object) number(fields ...string) (value int64, found bool) {
	value, found, err := o.integer(fields...)
	o.fail(strings.Join(fields, "."), err)
	return value, found
}

// count returns an integer field, or otherwise if the field is absent.
func (o *object) count(otherwise int64, fields ...string) int64 {
	if value, found := o.number(fields...); found {
		return value
	}
	return otherwise
}

// string returns a string field, or "".
func (o *object) string(fields ...string) string {
	value, _, err := o.text(fields...)
	o.fail(strings.Join(fields, "."), err)
	return value
}

func (o *object) list(fields ...string) []any {
	value, _, err := o.value(fields...)
	o.fail(strings.Join(fields, "."), err)
	list, ok := value.([]any)
	if !ok && value != nil {
		path := strings.Join(fields, ".")
		o.fail(path, fmt.Errorf(".%s: is %T, not a list", path, value))
	}
	return list
}

func (o *object) strings(fields ...string) []string {
	var texts []string
	for _, item := range o.list(fields...) {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// elementPath returns "LIST[KEY=VALUE].FIELD".
func elementPath(list, key, value, field string) string {
	if value == "" || strings.ContainsFunc(value, isNotPlain) {
		value = strconv.Quote(value)
	}
	return list + "[" + key + "=" + value + "]." + field
}

func isNotPlain(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_./", c)
}
