// Package builtin handles objects of built-in kinds like the API server's Go code: decoding into Go types, defaults, validation,
// the preparation of writes, and selectable fields. Custom resources have schemas instead; see package structural.
//
// A write calls, in this order: Decode, Default, admission (Admit first), PrepareForCreate or PrepareForUpdate, AllocateService
// for services, Validate. Objects are unstructured, in their stored API version. A function modifies its first object, so it must
// be a copy of the stored object.
package builtin

import "k8s.io/apimachinery/pkg/runtime"

type object = map[string]any

// setIfAbsent sets a field if it is absent, null or an empty string.
func setIfAbsent(obj object, name string, value any) {
	if current := obj[name]; current == nil || current == "" {
		obj[name] = value
	}
}

// setIfNil sets a field if it is absent or null.
func setIfNil(obj object, name string, value any) {
	if obj[name] == nil {
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
