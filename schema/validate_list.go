package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// listType validates uniqueness: items of sets, and keys of the items of maps. A Go type accepts duplicates, but a server-side apply
// does not.
func (v *validator) listType(items []any, s *Schema) {
	switch {
	case s.ListType == "map":
		v.mapList(items, s)
	case s.ListType == "set" || s.UniqueItems:
		for _, i := range v.duplicates(items) {
			v.duplicate(i, "is in the list twice: "+quoted(items[i])+", the schema says each item once", "remove one of them")
		}
	}
}

func (v *validator) mapList(items []any, s *Schema) {
	for i, item := range items {
		if _, isObject := item.(map[string]any); item != nil && !isObject {
			return // has a wrong type
		}
		v.missingKeys(i, item, s)
	}
	if len(items) < 2 {
		return
	}
	keys := make([]any, len(items))
	for i, item := range items {
		keys[i] = v.listKey(item, s)
	}
	for _, i := range v.duplicates(keys) {
		v.duplicate(i, "has the same "+s.keyText(items[i])+" as another item, the schema says each once", "change or remove one of them")
	}
}

// missingKeys warns of an item without a key: the server accepts it, but not in a server-side apply.
func (v *validator) missingKeys(i int, item any, s *Schema) {
	obj, _ := item.(map[string]any)
	schema := s.items.resolve()
	for _, name := range s.ListMapKeys {
		if _, found := obj[name]; found || obj == nil || schema == nil || !v.isTyped {
			continue
		}
		if field := schema.properties[name].resolve(); field != nil && field.Default == nil {
			v.pushIndex(i)
			v.warn("x-kubernetes-list-map-keys", "has no "+name+", a key of the list's items", "a server-side apply rejects it: set "+name)
			v.pop()
		}
	}
}

// listKey returns the key of an item. Keys are compared as JSON.
func (v *validator) listKey(item any, s *Schema) any {
	obj, _ := item.(map[string]any)
	key := make(map[string]any, len(s.ListMapKeys))
	schema := s.items.resolve()
	for _, name := range s.ListMapKeys {
		value, found := obj[name]
		if !found && v.isTyped && schema != nil {
			if field := schema.properties[name].resolve(); field != nil && field.Default != nil {
				value = field.Default
				found = true
			}
		}
		if found {
			key[name] = value
		}
	}
	return key
}

// keyText returns an item's key for a message: containerPort 80, protocol TCP.
func (s *Schema) keyText(item any) string {
	obj, _ := item.(map[string]any)
	var parts []string
	for _, name := range s.ListMapKeys {
		if value, found := obj[name]; found {
			parts = append(parts, name+" "+quoted(value))
		}
	}
	if len(parts) == 0 {
		return strings.Join(s.ListMapKeys, ", ")
	}
	return strings.Join(parts, ", ")
}

func (v *validator) duplicate(i int, message, hint string) {
	v.pushIndex(i)
	if v.isTyped {
		v.warn("x-kubernetes-list-type", message, "a server-side apply rejects it: "+hint)
	} else {
		v.reject("x-kubernetes-list-type", message, hint)
	}
	v.pop()
}

// duplicates returns the index of the second occurrence of each repeated value.
func (v *validator) duplicates(values []any) []int {
	if len(values) < 2 || !v.spend(len(values)) {
		return nil
	}
	var indexes []int
	count := make(map[any]int, len(values))
	for i, value := range values {
		switch value.(type) {
		case map[string]any, []any:
			content, err := json.Marshal(value)
			if err != nil {
				v.note(fmt.Sprintf("%s[%d]: %v", v.field(), i, err))
				continue
			}
			value = compound(content)
		}
		if count[value]++; count[value] == 2 {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// compound is the JSON of an object or list, other than a string of the same text.
type compound string
