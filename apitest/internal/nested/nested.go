// Package nested reads fields of decoded JSON objects. Unlike apimachinery's NestedString and its siblings, a missing field and a
// field of a different type read as the zero value, and nothing is copied: results must not be modified unless the object may be.
package nested

// Get returns the field at path as a T, or the zero value.
func Get[T any](obj map[string]any, path ...string) T {
	for len(path) > 1 {
		obj, _ = obj[path[0]].(map[string]any)
		path = path[1:]
	}
	value, _ := obj[path[0]].(T)
	return value
}

// String returns the string at path, or "".
func String(obj map[string]any, path ...string) string { return Get[string](obj, path...) }

// Int64 returns the integer at path, or 0.
func Int64(obj map[string]any, path ...string) int64 { return Get[int64](obj, path...) }

// Bool returns the boolean at path, or false.
func Bool(obj map[string]any, path ...string) bool { return Get[bool](obj, path...) }

// Map returns the object at path, or nil.
func Map(obj map[string]any, path ...string) map[string]any { return Get[map[string]any](obj, path...) }

// Slice returns the list at path, or nil.
func Slice(obj map[string]any, path ...string) []any { return Get[[]any](obj, path...) }

// Maps returns the items of the list at path, without items that are no objects.
func Maps(obj map[string]any, path ...string) []map[string]any {
	return itemsOf[map[string]any](Slice(obj, path...))
}

// Strings returns the items of the list at path, without items that are no strings.
func Strings(obj map[string]any, path ...string) []string {
	return itemsOf[string](Slice(obj, path...))
}

func itemsOf[T any](items []any) []T {
	typed := make([]T, 0, len(items))
	for _, item := range items {
		if item, ok := item.(T); ok {
			typed = append(typed, item)
		}
	}
	return typed
}

// StringMap returns the object at path with its values as strings, or nil. Values of a different type become "".
func StringMap(obj map[string]any, path ...string) map[string]string {
	values := Map(obj, path...)
	if values == nil {
		return nil
	}
	typed := make(map[string]string, len(values))
	for name, value := range values {
		typed[name], _ = value.(string)
	}
	return typed
}

// EnsureMap returns the object at path, and creates missing objects.
func EnsureMap(obj map[string]any, path ...string) map[string]any {
	for _, name := range path {
		existing, ok := obj[name].(map[string]any)
		if !ok {
			existing = map[string]any{}
			obj[name] = existing
		}
		obj = existing
	}
	return obj
}

// Condition returns the entry of status.conditions with the type, or nil.
func Condition(obj map[string]any, conditionType string) map[string]any {
	for _, condition := range Maps(obj, "status", "conditions") {
		if condition["type"] == conditionType {
			return condition
		}
	}
	return nil
}

// HasCondition reports whether the condition of the type is True.
func HasCondition(obj map[string]any, conditionType string) bool {
	return Condition(obj, conditionType)["status"] == "True"
}
