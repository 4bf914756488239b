package structural

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateLists returns errors for duplicates in lists of type set, and for duplicate keys in lists of type map.
func validateLists(path *field.Path, value any, n *node) field.ErrorList {
	if n == nil {
		return nil
	}
	var errs field.ErrorList
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			if n.additional != nil {
				errs = append(errs, validateLists(path.Key(name), child, n.additional)...)
			}
			if property, ok := n.properties[name]; ok {
				errs = append(errs, validateLists(path.Child(name), child, property)...)
			}
		}
	case []any:
		switch n.listType {
		case "set":
			for _, i := range duplicates(value) {
				errs = append(errs, field.Duplicate(path.Index(i), value[i]))
			}
		case "map":
			errs = append(errs, validateMapList(path, value, n)...)
		}
		for i, child := range value {
			errs = append(errs, validateLists(path.Index(i), child, n.items)...)
		}
	}
	return errs
}

func validateMapList(path *field.Path, items []any, n *node) field.ErrorList {
	keys := make([]any, len(items))
	for i, item := range items {
		key := map[string]any{}
		fields, ok := item.(map[string]any)
		if item != nil && !ok {
			return field.ErrorList{field.Invalid(path.Index(i), item, "must be an object for an array of list-type map")}
		}
		for _, name := range n.listMapKeys {
			if value, ok := fields[name]; ok {
				key[name] = value
			}
		}
		keys[i] = key
	}
	var errs field.ErrorList
	for _, i := range duplicates(keys) {
		errs = append(errs, field.Duplicate(path.Index(i), keys[i]))
	}
	return errs
}

// duplicates returns the index of the second occurrence of each repeated value.
func duplicates(values []any) []int {
	var indexes []int
	count := make(map[string]int, len(values))
	for i, value := range values {
		content, err := json.Marshal(value)
		if err != nil {
			continue
		}
		if count[string(content)]++; count[string(content)] == 2 {
			indexes = append(indexes, i)
		}
	}
	return indexes
}
