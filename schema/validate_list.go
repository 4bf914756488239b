package schema

import (
	"encoding/json"
	"fmt"
	"slices"
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
			v.duplicate(i, "is in the list twice: "+quoted(items[i])+", the schema says each item once", "remove it")
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
		v.duplicate(i, "has the same "+s.keyText(items[i])+" as another item, the schema says each once", "change or remove it")
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

// keyPair is the key of an item with two key fields.
type keyPair [2]any

// unspecified is the value of a missing key field.
type unspecified struct{}

// listKey returns the key of an item. Keys are equal if their JSON is.
func (v *validator) listKey(item any, s *Schema) any {
	obj, _ := item.(map[string]any)
	key := make([]any, len(s.ListMapKeys))
	isScalar := true
	for i, name := range s.ListMapKeys {
		value, found := obj[name]
		if !found {
			value = s.unspecifiedKey(name, v.isTyped)
		}
		key[i] = value
		isScalar = isScalar && isComparable(value)
	}
	switch {
	case len(key) == 1:
		return key[0]
	case len(key) == 2 && isScalar:
		return keyPair{key[0], key[1]}
	}
	return key
}

// unspecifiedKey returns the value of a missing key. Fields of custom resources have their defaults already.
func (s *Schema) unspecifiedKey(name string, isTyped bool) any {
	if schema := s.items.resolve(); isTyped && schema != nil {
		if field := schema.properties[name].resolve(); field != nil && field.Default != nil {
			return field.Default
		}
	}
	return unspecified{}
}

func isComparable(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
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

// maxCompared bounds the items that are compared in pairs. More items are looked up in a map.
const maxCompared = 12

// duplicates returns the index of the second occurrence of each repeated value.
func (v *validator) duplicates(values []any) (indexes []int) {
	if len(values) < 2 || !v.spend(len(values)) {
		return nil
	}
	if len(values) <= maxCompared && !slices.ContainsFunc(values, func(value any) bool { return !isComparable(value) }) {
		for i, value := range values {
			if first := slices.Index(values, value); first < i && slices.Index(values[first+1:], value) == i-first-1 {
				indexes = append(indexes, i)
			}
		}
		return indexes
	}
	count := make(map[any]int, len(values))
	for i, value := range values {
		if !isComparable(value) {
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

// compound is the JSON of an object or list. It differs from a string of the same text.
type compound string
