package schema

import (
	"maps"
	"reflect"
	"slices"
)

// completion is the place of a value in complete.
type completion struct {
	isResource        bool // apiVersion, kind and metadata are fields
	preservesUnknowns bool // of the list around
}

// complete returns a custom resource as the server completes it before validation: it removes nulls from fields that are not
// nullable, sets defaults, and removes and reports unknown fields. Changed maps and lists are copied, the rest is shared. A
// nil schema describes no fields.
func (v *validator) complete(value any, s *Schema, at completion) any {
	if !v.spend(1) {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		return v.completeObject(value, s, at)
	case []any:
		return v.completeList(value, s, at)
	}
	return value
}

func (v *validator) completeObject(obj map[string]any, s *Schema, at completion) map[string]any {
	preserves := s != nil && s.PreserveUnknownFields || at.preservesUnknowns
	isResource := at.isResource || s != nil && s.EmbeddedResource
	changed := &changedMap{original: obj}
	for name, child := range obj {
		if isResource && isMetaField(name) {
			continue
		}
		field, isKnown := s.child(name)
		switch {
		case isKnown && child == nil && field != nil && !field.Nullable:
			if field.Default == nil {
				changed.remove(name)
			} else {
				changed.set(name, v.complete(field.Default, field, completion{}))
			}
		case isKnown:
			v.push(name)
			completed := v.complete(child, field, completion{})
			v.pop()
			if !isSame(completed, child) {
				changed.set(name, completed)
			}
		case !preserves:
			v.unknown(name, s)
			changed.remove(name)
		}
	}
	if s != nil {
		for _, name := range s.defaulted {
			if _, found := obj[name]; !found && (!isResource || !isMetaField(name)) {
				field := s.properties[name].resolve()
				changed.set(name, v.complete(field.Default, field, completion{}))
			}
		}
	}
	return changed.result()
}

// child returns the schema of a field in a custom resource. It is nil for an unknown field, and for values of
// additionalProperties: true.
func (s *Schema) child(name string) (child *Schema, isKnown bool) {
	if s == nil {
		return nil, false
	}
	if field, found := s.properties[name]; found {
		return field.resolve(), true
	}
	return s.additionalProperties.resolve(), s.anyAdditional
}

func (v *validator) completeList(items []any, s *Schema, at completion) []any {
	var schema *Schema
	inside := completion{preservesUnknowns: at.preservesUnknowns}
	if s != nil {
		schema = s.items.resolve()
		inside.preservesUnknowns = inside.preservesUnknowns || s.PreserveUnknownFields
	}
	result := items
	for i, item := range items {
		v.pushIndex(i)
		completed := item
		switch {
		case item == nil && schema != nil && !schema.Nullable && schema.Default != nil:
			completed = v.complete(schema.Default, schema, completion{})
		case schema != nil || !inside.preservesUnknowns:
			completed = v.complete(item, schema, inside)
		}
		v.pop()
		if !isSame(completed, item) {
			if &result[0] == &items[0] {
				result = slices.Clone(items)
			}
			result[i] = completed
		}
	}
	return result
}

// changedMap copies a map on its first change.
type changedMap struct {
	original, changed map[string]any
}

func (c *changedMap) copied() map[string]any {
	if c.changed == nil {
		c.changed = make(map[string]any, len(c.original))
		maps.Copy(c.changed, c.original)
	}
	return c.changed
}

func (c *changedMap) set(name string, value any) { c.copied()[name] = value }

func (c *changedMap) remove(name string) { delete(c.copied(), name) }

func (c *changedMap) result() map[string]any {
	if c.changed == nil {
		return c.original
	}
	return c.changed
}

func without(obj map[string]any, name string) map[string]any {
	c := &changedMap{original: obj}
	c.remove(name)
	return c.changed
}

// isSame reports whether a completed value is the original: the same map or list, or a scalar.
func isSame(completed, original any) bool {
	switch completed := completed.(type) {
	case map[string]any:
		same, ok := original.(map[string]any)
		return ok && reflect.ValueOf(completed).Pointer() == reflect.ValueOf(same).Pointer()
	case []any:
		same, ok := original.([]any)
		return ok && len(completed) == len(same) && (len(same) == 0 || &completed[0] == &same[0])
	}
	return original != nil || completed == nil
}

func isMetaField(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

// unknown reports an unknown field. A nil schema describes no fields.
func (v *validator) unknown(name string, s *Schema) {
	v.failed++
	if v.trial > 0 {
		return
	}
	v.push(name)
	v.add(Problem{Keyword: "unknown", Message: "the schema has no such field", Hint: s.unknownHint(name)})
	v.pop()
}
