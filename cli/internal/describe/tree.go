package describe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// maxInline is the length in bytes of the longest list of scalars in a line.
	maxInline = 100
	// maxDepth limits the nesting of a tree. Deeper values are written as JSON.
	maxDepth = 50
)

// treeFields returns the fields of a map under their own names.
func treeFields(values map[string]any, depth int) (fields []field) {
	for _, name := range sortedNames(values) {
		fields = append(fields, treeField(name, values[name], depth))
	}
	return fields
}

// sortedNames returns the sorted names of a map, with "name" first.
func sortedNames(values map[string]any) []string {
	names := slices.Sorted(maps.Keys(values))
	if i := slices.Index(names, "name"); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "name")
	}
	return names
}

// treeField returns the field of any value.
func treeField(label string, value any, depth int) field {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return text(label, "{}")
		}
		if depth < maxDepth {
			return field{label: label, fields: treeFields(v, depth+1)}
		}
	case []any:
		if depth < maxDepth {
			return listField(label, v, depth)
		}
	case nil:
		return text(label, "<null>")
	case string:
		if v == "" {
			return text(label, `""`)
		}
		return text(label, strings.Split(strings.TrimSuffix(scalar(v), "\n"), "\n")...)
	}
	return text(label, scalar(value))
}

// listField returns the field of a list: in a line up to maxInline, otherwise with an item for each element.
func listField(label string, list []any, depth int) field {
	if len(list) == 0 {
		return text(label, "[]")
	}
	if line := strings.Join(texts(list), ", "); areScalars(list) && len(line) <= maxInline && !strings.Contains(line, "\n") {
		return text(label, line)
	}
	f := field{label: label}
	for _, element := range list {
		switch e := element.(type) {
		case map[string]any:
			if len(e) > 0 {
				f.items = append(f.items, treeFields(e, depth+1))
				continue
			}
		case []any:
			if len(e) > 0 {
				f.items = append(f.items, []field{treeField("[]", e, depth+1)})
				continue
			}
		}
		item := treeField("", element, depth+1)
		item.label = ""
		f.items = append(f.items, []field{item})
	}
	return f
}

func areScalars(list []any) bool {
	for _, element := range list {
		switch element.(type) {
		case map[string]any, []any:
			return false
		}
	}
	return true
}

// sizes returns the names and sizes of a secret's values.
func sizes(label string, values map[string]any, size func(string) int) []field {
	if len(values) == 0 {
		return nil
	}
	var fields []field
	for _, name := range slices.Sorted(maps.Keys(values)) {
		line := "<not text>"
		if value, ok := values[name].(string); ok {
			line = fmt.Sprintf("%d bytes", size(value))
		}
		fields = append(fields, text(name, line))
	}
	return []field{{label: label, fields: fields}}
}
