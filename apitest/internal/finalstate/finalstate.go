// Package finalstate makes the objects of two runs comparable: random and time-dependent values are removed.
package finalstate

import (
	"strings"
	"time"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// UIDs maps the UIDs of objects to their kinds and names.
func UIDs(objects []*unstructured.Object) map[any]string {
	uids := map[any]string{}
	for _, obj := range objects {
		uids[string(obj.GetUID())] = obj.GetKind() + " " + obj.GetName()
	}
	return uids
}

// Normalize returns a copy of obj without resourceVersion, UID, times, generation and managed fields. References by UID become kind
// and name, times become <time>, and observedGeneration is compared with the generation.
func Normalize(obj *unstructured.Object, uids map[any]string) map[string]any {
	copied := obj.DeepCopy().Object
	metadata := nested.Map(copied, "metadata")
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "managedFields", "generation", "selfLink"} {
		delete(metadata, field)
	}
	if obj.GetGenerateName() != "" {
		delete(metadata, "name")
	}
	if copied["kind"] == "Namespace" || metadata["name"] == "kubernetes" {
		delete(copied, "spec")
	}
	result, _ := normalizeValue("", copied, obj.GetGeneration(), uids).(map[string]any)
	return result
}

func normalizeValue(field string, value any, generation int64, uids map[any]string) any {
	switch v := value.(type) {
	case map[string]any:
		for name, nested := range v {
			v[name] = normalizeValue(name, nested, generation, uids)
		}
	case []any:
		for i, nested := range v {
			v[i] = normalizeValue("", nested, generation, uids)
		}
	case int64:
		if field == "observedGeneration" {
			return map[bool]string{true: "current", false: "old"}[v == generation]
		}
	case string:
		if owner, exists := uids[v]; exists {
			return "<uid of " + owner + ">"
		}
		if isUID(v) {
			return "<uid of an object that does not exist>"
		}
		if _, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return "<time>"
		}
	}
	return value
}

// isUID reports whether a text has the form of a UID.
func isUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range text {
		isDash := i == 8 || i == 13 || i == 18 || i == 23
		if isDash != (c == '-') || !isDash && !strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
	}
	return true
}
