package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/apitest/internal/finalstate"
	"github.com/anykind/anykind/unstructured"
)

// state maps kind, namespace and name to the normalized JSON of an object. Successful runs have equal states: resourceVersions,
// times and UIDs are removed.
type state map[string]string

// finalState returns the state of all objects except incidental objects.
func (r *run) finalState() state {
	objects := r.server.Objects()
	uids := finalstate.UIDs(objects)
	result := state{}
	for _, obj := range objects {
		if isIncidentalKind(obj) {
			continue
		}
		key := keyOf(obj)
		if obj.GetGenerateName() != "" {
			key = fmt.Sprintf("%s %s/%s*", obj.GetKind(), obj.GetNamespace(), obj.GetGenerateName())
		}
		data, err := json.Marshal(finalstate.Normalize(obj, uids))
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
