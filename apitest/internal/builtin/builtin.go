// Package builtin handles objects of built-in kinds like the API server's Go code: decoding into Go types, defaults, validation,
// the preparation of writes, and selectable fields. Custom resources have schemas instead; see package structural.
//
// A write calls, in this order: Decode, Default, admission (Admit first), PrepareForCreate or PrepareForUpdate, AllocateService
// for services, Validate. Objects are unstructured, in their stored API version. A function modifies its first object, so it must
// be a copy of the stored object.
package builtin

import "k8s.io/apimachinery/pkg/runtime"

type object = map[string]any

// child returns the object in a field, or nil.
func child(obj object, path ...string) object {
	for _, name := range path {
		obj, _ = obj[name].(object)
	}
	return obj
}

// ensure returns the object in a field, and creates it if it is missing.
func ensure(obj object, name string) object {
	existing, ok := obj[name].(object)
	if !ok {
		existing = object{}
		obj[name] = existing
	}
	return existing
}

func list(obj object, name string) []any   { items, _ := obj[name].([]any); return items }
func text(obj object, name string) string  { s, _ := obj[name].(string); return s }
func number(obj object, name string) int64 { n, _ := obj[name].(int64); return n }
func truth(obj object, name string) bool   { b, _ := obj[name].(bool); return b }

// objects returns the items of a list, without items of other types.
func objects(obj object, name string) []object {
	items := list(obj, name)
	out := make([]object, 0, len(items))
	for _, item := range items {
		if item, ok := item.(object); ok {
			out = append(out, item)
		}
	}
	return out
}

// setIfAbsent sets a field if it is absent, null or an empty string.
func setIfAbsent(obj object, name string, value any) {
	if current := obj[name]; current == nil || current == "" {
		obj[name] = value
	}
}

// setIfZero sets a field if it is absent, null, an empty string or zero.
func setIfZero(obj object, name string, value any) {
	if obj[name] == int64(0) {
		delete(obj, name)
	}
	setIfAbsent(obj, name, value)
}

// copyField copies a field of from to obj, or removes it if from lacks it.
func copyField(obj, from object, name string) {
	if value, ok := from[name]; ok {
		obj[name] = runtime.DeepCopyJSONValue(value)
	} else {
		delete(obj, name)
	}
}
