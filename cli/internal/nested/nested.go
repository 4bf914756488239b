// Package nested reads fields of decoded JSON without copies: a missing field and a field of a different type read as zero. Use
// unstructured.Get to tell them apart, or for a copy.
package nested

// Value returns the value at a path of field names, or nil.
func Value(value any, path ...string) any {
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// String returns the string at a path, or "".
func String(value any, path ...string) string {
	text, _ := Value(value, path...).(string)
	return text
}

// Bool returns the boolean at a path, or false.
func Bool(value any, path ...string) bool {
	is, _ := Value(value, path...).(bool)
	return is
}

// Int returns the number at a path as an integer, or 0.
func Int(value any, path ...string) int64 {
	switch number := Value(value, path...).(type) {
	case int64:
		return number
	case float64:
		return int64(number)
	}
	return 0
}

// List returns the list at a path, or nil.
func List(value any, path ...string) []any {
	list, _ := Value(value, path...).([]any)
	return list
}

// Map returns the map at a path, or nil.
func Map(value any, path ...string) map[string]any {
	fields, _ := Value(value, path...).(map[string]any)
	return fields
}
