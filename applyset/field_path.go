package applyset

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// fieldPath returns the server's notation of a path of FieldsV1: .spec.containers[name="web"].image
func fieldPath(path []string) string {
	var text strings.Builder
	for _, step := range path {
		if name, isField := strings.CutPrefix(step, "f:"); isField {
			text.WriteString("." + name)
			continue
		}
		text.WriteString(itemText(itemKey(step)))
	}
	return text.String()
}

// itemText returns the server's notation of the key of a list item: [name="web"], or [="web"] in a set.
func itemText(key map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(key)) {
		parts = append(parts, name+"="+encode(key[name]))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// deleteField deletes the field with a path in the server's notation, and reports whether it exists. Names in a path are not
// quoted, so they are compared with the names in the object.
func deleteField(fields map[string]any, path string) bool {
	for name, value := range fields {
		rest, found := strings.CutPrefix(path, "."+name)
		switch {
		case !found:
		case rest == "":
			delete(fields, name)
			return true
		case deleteIn(value, rest, func(items []any) { fields[name] = items }):
			return true
		}
	}
	return false
}

// deleteIn deletes the field at path of a value. set replaces a value that is a list.
func deleteIn(value any, path string, set func([]any)) bool {
	switch value := value.(type) {
	case map[string]any:
		return deleteField(value, path)
	case []any:
		return deleteInItem(value, path, false, set) || deleteInItem(value, path, true, set)
	}
	return false
}

// deleteInItem is deleteIn for a list.
func deleteInItem(all []any, path string, allowDefaults bool, set func([]any)) bool {
	for i, item := range all {
		rest, found := cutItem(path, item, allowDefaults)
		switch {
		case !found:
		case rest == "":
			set(slices.Delete(all, i, i+1))
			return true
		case deleteIn(item, rest, func(items []any) { all[i] = items }):
			return true
		}
	}
	return false
}

// cutItem returns path without the item in front, if item has its key. With allowDefaults, a field of the key that the item lacks has a
// default.
func cutItem(path string, item any, allowDefaults bool) (rest string, found bool) {
	fields, isMap := item.(map[string]any)
	if !isMap {
		return strings.CutPrefix(path, itemText(map[string]any{setValue: item}))
	}
	if !strings.HasPrefix(path, "[") {
		return "", false
	}
	// The key has any of the item's fields, in the order of their names.
	rest = path[1:]
	matched := false
	for rest != "" && rest[0] != ']' {
		name, _, isPair := strings.Cut(rest, "=")
		if !isPair {
			return "", false
		}
		rest = rest[len(name)+1:]
		if value, exists := fields[name]; exists {
			if rest, found = strings.CutPrefix(rest, encode(value)); !found {
				return "", false
			}
			matched = true
		} else if rest, found = cutValue(rest); !found || !allowDefaults {
			return "", false
		}
		next, isPart := strings.CutPrefix(rest, ",")
		if !isPart && !strings.HasPrefix(rest, "]") { // the value is longer: 8080 instead of 80
			return "", false
		}
		rest = next
	}
	rest, found = strings.CutPrefix(rest, "]")
	return rest, found && matched
}

// cutValue returns text without the JSON value in front.
func cutValue(text string) (rest string, found bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	var value json.RawMessage
	if decoder.Decode(&value) != nil {
		return "", false
	}
	return text[decoder.InputOffset():], true
}
