package schema

import (
	"fmt"
	"slices"
	"strconv"
)

// maxSteps bounds the work for an object: schemas applied to values, and parts of strings matched with patterns. Schemas with
// references may describe a value in exponentially many ways.
const maxSteps = 5_000_000

// maxNesting bounds the nesting of applied schemas. It is larger than the nesting of any accepted object.
const maxNesting = 20_000

// validator validates an object. It reports problems at the current path.
type validator struct {
	root      *Schema
	isTyped   bool // the value is decoded into Go types
	isSecret  bool // values of data and stringData are confidential
	path      []segment
	problems  []Problem
	notes     []string
	ruleCount int // rules that apply to the object

	trial  int  // > 0: problems are counted only
	failed int  // problems counted
	steps  int  // done
	depth  int  // of schemas
	isOver bool // the work is bounded
}

// segment is a step of a path: a field's name, or the index of a list if name is empty and isIndex.
type segment struct {
	name    string
	index   int
	isIndex bool
}

func (v *validator) push(name string) { v.path = append(v.path, segment{name: name}) }

func (v *validator) pushIndex(i int) { v.path = append(v.path, segment{index: i, isIndex: true}) }

func (v *validator) pop() { v.path = v.path[:len(v.path)-1] }

// spend counts steps and reports whether the object may be validated further.
func (v *validator) spend(steps int) bool {
	if v.steps += steps; v.steps > maxSteps && !v.isOver {
		v.isOver = true
		v.note(fmt.Sprintf("the rest of the object from %s: the schema is too complex", v.field()))
	}
	return !v.isOver
}

// fail reports that a value violates a keyword of its schema.
func (v *validator) fail(keyword string, s *Schema, value any) {
	v.failed++
	if v.trial == 0 {
		if v.isSecret && len(v.path) > 0 && (v.path[0].name == "data" || v.path[0].name == "stringData") {
			value = withoutText(value)
		}
		message, hint := violation(keyword, s, value)
		v.add(Problem{Keyword: keyword, Message: message, Hint: hint})
	}
}

// reject reports a problem with a fixed message.
func (v *validator) reject(keyword, message, hint string) {
	v.failed++
	if v.trial == 0 {
		v.add(Problem{Keyword: keyword, Message: message, Hint: hint})
	}
}

// warn reports a problem of an object that the server accepts.
func (v *validator) warn(keyword, message, hint string) {
	if v.trial == 0 {
		v.add(Problem{Keyword: keyword, Message: message, Hint: hint, IsWarning: true})
	}
}

func (v *validator) add(problem Problem) { v.addAt(v.pathSteps(), problem) }

func (v *validator) addAt(path []any, problem Problem) {
	if len(v.problems) >= maxProblems {
		v.note(fmt.Sprintf("more than %d problems are not listed", maxProblems))
		return
	}
	problem.Path = path
	v.problems = append(v.problems, problem)
}

func (v *validator) pathSteps() []any {
	path := make([]any, len(v.path))
	for i, step := range v.path {
		if step.isIndex {
			path[i] = step.index
		} else {
			path[i] = step.name
		}
	}
	return path
}

// field returns the current path as text.
func (v *validator) field() string {
	problem := Problem{Path: v.pathSteps()}
	if text := problem.Field(); text != "" {
		return text
	}
	return "the object"
}

// maxNotes bounds Result.NotChecked.
const maxNotes = 100

// note adds a line to Result.NotChecked.
func (v *validator) note(text string) {
	if len(v.notes) < maxNotes && !slices.Contains(v.notes, text) {
		v.notes = append(v.notes, text)
	}
}

// value validates a value by a schema.
func (v *validator) value(value any, s *Schema) {
	if s == nil || !v.spend(1) {
		return
	}
	if v.depth++; v.depth > maxNesting {
		v.isOver = true
		v.note(fmt.Sprintf("the rest of the object from %s: schemas refer to each other without an end", v.field()))
	} else {
		v.checks(value, s)
	}
	v.depth--
}

func (v *validator) checks(value any, s *Schema) {
	if s.Unresolved != nil {
		v.note(fmt.Sprintf("%s: %v", v.field(), s.Unresolved))
		return
	}
	v.ruleCount += len(s.Rules)
	if value == nil {
		v.null(s)
		return
	}
	if s.deprecation != "" && len(v.path) > 0 {
		v.warn("deprecated", s.deprecation, "")
	}
	n, isNumber := toNumber(value)
	if isNumber {
		value = n.value()
	}
	if !v.hasType(value, s) {
		v.fail("type", s, value)
		return
	}
	if len(s.Enum) > 0 && !v.isOfEnum(value, s) {
		v.fail("enum", s, value)
	}
	switch value := value.(type) {
	case string:
		v.text(value, s)
	case map[string]any:
		v.object(value, s)
	case []any:
		v.list(value, s)
	default:
		if isNumber {
			v.number(n, s)
		}
	}
	v.combinations(value, s)
}

// null validates a null: Go types accept it for all fields. The server removes it from fields of custom resources that are not
// nullable, before the object is validated.
func (v *validator) null(s *Schema) {
	if v.isTyped {
		return
	}
	if (s.Type != "" || s.IntOrString) && !s.Nullable {
		v.fail("type", s, nil)
	} else if len(s.Enum) > 0 {
		v.reject("enum", "is null, which no enum permits", "omit the field")
	}
}

// hasType reports whether a value has its schema's type.
func (v *validator) hasType(value any, s *Schema) bool {
	actual := jsonType(value)
	switch {
	case s.IntOrString:
		return actual == "integer" || actual == "string"
	case s.Type == "":
		// Server's validation of custom resources: a format implies a string.
		return v.isTyped || !s.hasStringFormat() || actual == "string" || actual == "array"
	case s.isType(actual):
		return true
	case actual == "array" && !v.isTyped && s.Type == "string" && s.hasStringFormat():
		v.warn("type", "is a list, the schema says string ("+s.Format+")", "the server accepts a list in place of a string with a format")
		return true
	}
	return v.isTyped && s.Type == "object" && s.isOpaque()
}

// isType reports whether a type of jsonType is the schema's.
func (s *Schema) isType(actual string) bool {
	return actual == s.Type || actual == "integer" && s.Type == "number"
}

// isOpaque reports whether an object's schema says nothing about its fields, as for RawExtension.
func (s *Schema) isOpaque() bool { return len(s.properties) == 0 && !s.anyAdditional }

// jsonType returns the type of a value in schemas.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case int64:
		return "integer"
	case float64:
		return "number"
	}
	return fmt.Sprintf("%T", value)
}

// object validates an object's fields.
func (v *validator) object(obj map[string]any, s *Schema) {
	count := int64(len(obj))
	if s.MinProperties != nil && count < *s.MinProperties {
		v.fail("minProperties", s, obj)
	}
	if s.MaxProperties != nil && count > *s.MaxProperties {
		v.fail("maxProperties", s, obj)
	}
	isResource := s.EmbeddedResource && !v.isTyped
	if isResource {
		v.embedded(obj)
	}
	isRoot := len(v.path) == 0
	for name, child := range obj {
		if isResource && isMetaField(name) || isRoot && name == "metadata" && !v.isTyped {
			continue
		}
		field, isKnown := s.properties[name]
		switch {
		case isKnown:
			v.push(name)
			v.value(child, field.resolve())
			v.pop()
		case s.anyAdditional:
			v.push(name)
			v.value(child, s.additionalProperties.resolve())
			v.pop()
		case v.isTyped && len(s.properties) > 0 && !s.PreserveUnknownFields:
			v.unknown(name, s)
		}
	}
	v.required(obj, s)
}

// list validates a list's items.
func (v *validator) list(items []any, s *Schema) {
	count := int64(len(items))
	if s.MinItems != nil && count < *s.MinItems {
		v.fail("minItems", s, items)
	}
	if s.MaxItems != nil && count > *s.MaxItems {
		v.fail("maxItems", s, items)
	}
	if schema := s.items.resolve(); schema != nil {
		for i, item := range items {
			v.pushIndex(i)
			v.value(item, schema)
			v.pop()
		}
	}
	v.listType(items, s)
}

// confidential stands for a value of a Secret in messages and hints.
type confidential struct{}

// withoutText replaces a value that a message or hint would quote.
func withoutText(value any) any {
	switch value.(type) {
	case nil, map[string]any, []any:
		return value
	default:
		return confidential{}
	}
}

// quoted returns a value for a message, at most maxValueText characters.
func quoted(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case confidential:
		return "a value"
	case string:
		return strconv.Quote(shortened(value))
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return shortened(fmt.Sprint(value))
	}
}

const maxValueText = 60

func shortened(text string) string {
	if runes := []rune(text[:min(len(text), 4*maxValueText+4)]); len(runes) > maxValueText {
		return string(runes[:maxValueText]) + "…"
	}
	return text
}
