package readiness

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// object reads fields for the rules. A field of an unexpected type makes the status Unknown: err keeps the first such error. The
// rules go on with the field's zero value.
type object struct {
	value   func(fields ...string) (any, bool, error)
	text    func(fields ...string) (string, bool, error)
	integer func(fields ...string) (int64, bool, error)

	conditions []condition
	err        error
	badField   string
}

// fail keeps the first error and the path of its field.
func (o *object) fail(path string, err error) {
	if o.err == nil && err != nil {
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

// condition is an entry of status.conditions.
type condition struct {
	name, status, reason, message string
	observed                      int64 // generation
	hasObserved                   bool
}

func (o *object) readConditions() {
	for i, item := range o.list("status", "conditions") {
		entry, ok := item.(map[string]any)
		if !ok {
			o.fail("status.conditions", fmt.Errorf(".status.conditions[%d]: is %T, not an object", i, item))
			return
		}
		text := func(name string) string {
			value, ok := entry[name].(string)
			if !ok && entry[name] != nil {
				o.fail("status.conditions", fmt.Errorf(".status.conditions[%d].%s: is %T, not string", i, name, entry[name]))
			}
			return value
		}
		c := condition{name: text("type"), status: text("status"), reason: text("reason"), message: text("message")}
		c.observed, c.hasObserved = entry["observedGeneration"].(int64)
		o.conditions = append(o.conditions, c)
	}
}

// condition returns the first condition of the type.
func (o *object) condition(name string) (condition, bool) {
	for _, c := range o.conditions {
		if c.name == name {
			return c, true
		}
	}
	return condition{name: name}, false
}

// behind returns InProgress if c.observedGeneration < metadata.generation, or the zero Result.
func (o *object) behind(c condition) Result {
	generation := o.count(0, "metadata", "generation")
	if !c.hasObserved || c.observed >= generation {
		return Result{}
	}
	message := fmt.Sprintf("condition %s is of generation %d, the object is at %d", c.name, c.observed, generation)
	return Result{InProgress, c.path("observedGeneration"), message}
}

// path returns the path of a field of the condition.
func (c condition) path(field string) string {
	return elementPath("conditions", "type", c.name, field)
}

// elementPath returns "status.LIST[KEY=VALUE].FIELD".
func elementPath(list, key, value, field string) string {
	if value == "" || strings.ContainsFunc(value, isNotPlain) {
		value = strconv.Quote(value)
	}
	return "status." + list + "[" + key + "=" + value + "]." + field
}

func isNotPlain(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_./", c)
}

// result returns the status with the condition as its reason.
func (c condition) result(status Status) Result {
	return Result{status, c.path("status"), explained(fmt.Sprintf("condition %s is %s", c.name, c.status), c.reason, c.message)}
}

// explained joins the non-empty parts: a fact and its explanations.
func explained(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}
