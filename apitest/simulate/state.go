package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// state maps kind, namespace and name to the normalized JSON of an object. Successful runs have equal states: resourceVersions,
// times and UIDs are removed.
type state map[string]string

// finalState returns the state of all objects except incidental objects.
func (r *run) finalState() state {
	objects := r.server.Objects()
	uids := map[any]string{}
	for _, obj := range objects {
		uids[string(obj.GetUID())] = obj.GetKind() + " " + obj.GetName()
	}
	result := state{}
	for _, obj := range objects {
		if isIncidentalKind(obj) {
			continue
		}
		key := keyOf(obj)
		if obj.GetGenerateName() != "" {
			key = fmt.Sprintf("%s %s/%s*", obj.GetKind(), obj.GetNamespace(), obj.GetGenerateName())
		}
		data, err := json.Marshal(normalize(obj, uids))
		if err != nil {
			data = []byte(err.Error())
		}
		for n := 2; ; n++ {
			if _, exists := result[key]; !exists {
				break
			}
			key = strings.TrimRight(key, "0123456789") + fmt.Sprint(n)
		}
		result[key] = string(data)
	}
	return result
}

func isIncidentalKind(obj *unstructured.Object) bool {
	kind := obj.GetKind()
	return kind == "Lease" || kind == "Event" || kind == "CustomResourceDefinition"
}

func keyOf(obj *unstructured.Object) string {
	return obj.GetKind() + " " + strings.Trim(obj.GetNamespace()+"/"+obj.GetName(), "/")
}

// normalize returns a copy of obj without random and time-dependent fields. References by UID become kind and name.
func normalize(obj *unstructured.Object, uids map[any]string) map[string]any {
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

// difference describes how s differs from want, "" if the states are equal.
func (s state) difference(want state) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch got, exists := s[key]; {
		case !exists:
			lines = append(lines, key+" is missing")
		case got != want[key]:
			lines = append(lines, fmt.Sprintf("%s is\n      %s\n    instead of\n      %s", key, got, want[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if _, exists := want[key]; !exists {
			lines = append(lines, key+" should not be there: "+s[key])
		}
	}
	return strings.Join(lines, "\n  ")
}

// objectVersions returns the UID and resourceVersion of all objects except incidental objects.
func (r *run) objectVersions() map[string]string {
	result := map[string]string{}
	for _, obj := range r.server.Objects() {
		if !isIncidentalKind(obj) {
			result[keyOf(obj)] = string(obj.GetUID()) + " " + obj.GetResourceVersion()
		}
	}
	return result
}

// changes returns the names of added, changed and removed objects.
func changes(before, after map[string]string) (names []string) {
	for key, version := range after {
		if before[key] != version {
			names = append(names, key)
		}
	}
	for key := range before {
		if _, exists := after[key]; !exists {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}
