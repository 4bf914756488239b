package schema

import (
	_ "embed" // skeleton_required.json
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Skeleton returns a new object of a kind as YAML: required fields with values that their schemas accept, and as comments their
// descriptions, further fields with defaults, and CEL rules, which it does not evaluate. Built-in kinds get fields that their API
// servers require although no schema says so, such as the image of a container. s is the kind's schema. Values of required texts
// are examples: a minLength of more than 4096 is not met.
func (s *Schema) Skeleton(gvk schema.GroupVersionKind, name string) string {
	b := &skeletonBuilder{name: name}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	root := b.object(s, 0)
	fields := []*skeletonField{
		{name: "apiVersion", value: quote(apiVersion)}, {name: "kind", value: quote(kind)},
		{name: "metadata", fields: []*skeletonField{{name: "name", value: quote(name)}}},
	}
	if spec := s.Field("spec"); spec != nil && !hasField(root, "spec") {
		root = append([]*skeletonField{b.field("spec", spec, 1)}, root...)
	}
	for _, field := range root {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field.name) {
			fields = append(fields, field)
		}
	}
	var text strings.Builder
	for _, line := range ruleComments(s) {
		fmt.Fprintf(&text, "# %s\n", line)
	}
	writeFields(&text, fields, "")
	return text.String()
}

const (
	// maxSkeletonDepth bounds required fields nested in each other: a schema may require itself.
	maxSkeletonDepth = 20
	// maxSkeletonFields bounds the required fields: a schema may require itself in several fields.
	maxSkeletonFields = 10_000
)

// skeletonField is a field of a skeleton: a scalar or empty value, an object, or a list of one item.
type skeletonField struct {
	name      string
	comments  []string
	value     string // JSON, for a field without fields and item
	fields    []*skeletonField
	item      *skeletonField // of a list
	isComment bool           // a field that is not required
}

type skeletonBuilder struct {
	name   string
	fields int // required fields so far
}

// skeleton_required.json has fields that the API server requires of built-in kinds, although their schemas do not, by the name of
// the schema. NAME is the object's name. A test creates the skeleton of every kind on an API server.
//
//go:embed skeleton_required.json
var requiredJSON []byte

var requiredByServer = sync.OnceValue(func() map[string]map[string]any {
	fields := map[string]map[string]any{}
	_ = json.Unmarshal(requiredJSON, &fields) // a test decodes it
	return fields
})

// object returns the required fields of an object, and those with defaults as comments, required fields first.
func (b *skeletonBuilder) object(s *Schema, depth int) []*skeletonField {
	required := s.requiredFields()
	added := requiredByServer()[s.Name]
	var fields, comments []*skeletonField
	for name, field := range s.Fields() {
		addition, isAdded := added[name]
		switch {
		case isAdded:
			fields = append(fields, b.added(name, field, addition))
		case slices.Contains(required, name):
			fields = append(fields, b.field(name, field.withAlternatives(s, name), depth+1))
		case field.Default != nil && !isEmpty(field.Default):
			comments = append(comments, &skeletonField{name: name, comments: commentsOf(field), value: toJSON(field.Default), isComment: true})
		}
	}
	return append(fields, comments...)
}

// requiredFields returns the names of the required fields of s and of its parts.
func (s *Schema) requiredFields() []string {
	var required []string
	for _, part := range s.allParts() {
		required = append(required, part.Required...)
	}
	return required
}

// allParts returns s, its chosen parts, and their chosen parts. Each schema occurs once: a schema may be a part of itself.
func (s *Schema) allParts() []*Schema {
	all := []*Schema{s}
	found := map[*Schema]bool{s: true}
	for i := 0; i < len(all); i++ {
		for _, part := range all[i].chosenParts() {
			if !found[part] {
				found[part] = true
				all = append(all, part)
			}
		}
	}
	return all
}

// chosenParts returns the schemas of allOf and the first alternatives of anyOf and oneOf.
func (s *Schema) chosenParts() []*Schema {
	parts := slices.Clone(s.AllOf)
	for _, alternatives := range [][]*Schema{s.AnyOf, s.OneOf} {
		if len(alternatives) > 0 {
			parts = append(parts, alternatives[0])
		}
	}
	for i, part := range parts {
		parts[i] = part.resolve()
	}
	return parts
}

// withAlternatives returns the schema of a field of s with what the chosen parts of s require of the field.
func (f *Schema) withAlternatives(s *Schema, name string) *Schema {
	merged := *f
	for _, part := range s.chosenParts() {
		if field := part.Field(name); field != nil {
			merged.Required = slices.Concat(merged.Required, field.Required)
			if merged.Enum == nil {
				merged.Enum = field.Enum
			}
			if merged.Pattern == "" {
				merged.Pattern = field.Pattern
			}
		}
	}
	return &merged
}

// field returns a required field.
func (b *skeletonBuilder) field(name string, s *Schema, depth int) *skeletonField {
	field := &skeletonField{name: name, comments: append(commentsOf(s), ruleComments(s)...)}
	b.fields++
	switch {
	case s.Default != nil && !isEmpty(s.Default):
		field.value = toJSON(s.Default)
	case depth > maxSkeletonDepth, b.fields > maxSkeletonFields:
		field.value = "null"
	case s.Type == "object" && !s.IntOrString:
		if field.fields = b.object(s, depth); !hasValues(field.fields) {
			field.value = b.emptyObject(s)
		}
	case s.Type == "array":
		field.setItem(b, s, depth)
	default:
		field.value = toJSON(b.scalar(name, s))
	}
	return field
}

// setItem sets the item of a list, if the list must have one or its items have required fields.
func (f *skeletonField) setItem(b *skeletonBuilder, s *Schema, depth int) {
	f.value = "[]"
	items := s.Items()
	if items == nil {
		return
	}
	if item := b.field("", items, depth+1); item.value == "" || s.MinItems != nil && *s.MinItems > 0 {
		item.comments = nil
		f.item = item
		f.comments = append(f.comments, ruleComments(items)...)
	}
}

// emptyObject returns the JSON of an object without required fields.
func (b *skeletonBuilder) emptyObject(s *Schema) string {
	if s.MinProperties != nil && *s.MinProperties > 0 {
		if values, hasValues := s.Values(); hasValues {
			value := any("example")
			if values != nil {
				value = b.scalar("", values)
			}
			return toJSON(map[string]any{"example": value})
		}
	}
	return "{}"
}

// added returns a field of requiredByServer.
func (b *skeletonBuilder) added(name string, s *Schema, value any) *skeletonField {
	field := &skeletonField{name: name, comments: commentsOf(s)}
	field.setValue(value, b.name)
	return field
}

// setValue sets a value of requiredByServer. NAME in a text is the object's name.
func (f *skeletonField) setValue(value any, objectName string) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			child := &skeletonField{name: key}
			child.setValue(value[key], objectName)
			f.fields = append(f.fields, child)
		}
		if len(value) == 0 {
			f.value = "{}"
		}
	case []any:
		f.item = &skeletonField{}
		f.item.setValue(value[0], objectName)
	case string:
		f.value = quote(strings.ReplaceAll(value, "NAME", objectName))
	default:
		f.value = toJSON(value)
	}
}

// writeFields writes the fields of an object.
func writeFields(text *strings.Builder, fields []*skeletonField, indent string) {
	for _, field := range fields {
		for _, comment := range field.comments {
			fmt.Fprintf(text, "%s# %s\n", indent, comment)
		}
		begin := indent + field.name + ":"
		if field.isComment {
			begin = indent + "# " + field.name + ":"
		}
		field.write(text, begin, indent)
	}
}

// write writes the value behind begin, which ends in a colon or a list's dash.
func (f *skeletonField) write(text *strings.Builder, begin, indent string) {
	switch {
	case f.item != nil:
		text.WriteString(begin + "\n")
		f.item.writeItem(text, indent)
	case f.value != "":
		text.WriteString(begin + " " + f.value + "\n")
		writeFields(text, f.fields, indent+"  ") // comments
	default:
		text.WriteString(begin + "\n")
		writeFields(text, f.fields, indent+"  ")
	}
}

func (f *skeletonField) writeItem(text *strings.Builder, indent string) {
	if f.value != "" || f.item != nil {
		f.write(text, indent+"-", indent+"  ")
		return
	}
	var item strings.Builder
	writeFields(&item, f.fields, indent+"  ")
	lines := strings.SplitAfter(item.String(), "\n")
	for i, line := range lines { // the dash stands before the first field; comments stay above
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			lines[i] = indent + "- " + strings.TrimPrefix(line, indent+"  ")
			break
		}
	}
	text.WriteString(strings.Join(lines, ""))
}

func hasField(fields []*skeletonField, name string) bool {
	return slices.ContainsFunc(fields, func(f *skeletonField) bool { return f.name == name })
}

func hasValues(fields []*skeletonField) bool {
	return slices.ContainsFunc(fields, func(f *skeletonField) bool { return !f.isComment })
}

// commentsOf returns the comments of a field: the first sentence of its description, and its enum.
func commentsOf(s *Schema) []string {
	var comments []string
	if sentence := firstSentence(s.Description); sentence != "" {
		comments = append(comments, sentence)
	}
	if len(s.Enum) > 0 {
		var allowed []string
		for _, value := range s.Enum {
			allowed = append(allowed, toJSON(value))
		}
		comments = append(comments, "one of "+strings.Join(allowed, ", "))
	}
	return comments
}

func ruleComments(s *Schema) []string {
	var comments []string
	for _, rule := range s.Rules {
		text := rule.Message
		if text == "" {
			text = rule.Rule
		}
		comments = append(comments, "rule: "+strings.Join(strings.Fields(text), " "))
	}
	return comments
}

func firstSentence(description string) string {
	text := strings.Join(strings.Fields(description), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i+1]
	}
	const limit = 120
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}

// isEmpty reports whether a default is a zero value or an empty list. Built-in kinds have such defaults for required fields.
func isEmpty(value any) bool {
	list, isList := value.([]any)
	return isZero(value) || isList && len(list) == 0
}

func toJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	return string(data)
}

func quote(text string) string {
	if isPlain(text) {
		return text
	}
	return toJSON(text)
}

// isPlain reports whether a YAML text needs no quotes.
func isPlain(text string) bool {
	if text == "" || strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./-") != "" {
		return false
	}
	first := text[0]
	return (first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z') &&
		!slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(text))
}
