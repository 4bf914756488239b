package controller

import (
	"maps"
	"slices"
	"time"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions gives the obj's status.conditions with some of them set, for [SetStatus] and [PatchStatus]; obj stays as it
// is. The conditions keep their order, new ones come last, and an entry's fields that metav1.Condition does not have
// stay.
//
// lastTransitionTime changes only where the condition's status does: it is then the one that the condition gives, or
// now. An observedGeneration of 0 becomes obj's metadata.generation. See
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties.
func Conditions(obj *unstructured.Object, set ...metav1.Condition) []any {
	all, _, _ := unstructured.Get[[]any](obj, "status", "conditions") // what is no list is replaced by one
	for _, condition := range set {
		at := slices.IndexFunc(all, func(one any) bool {
			entry, _ := one.(map[string]any)
			return entry["type"] == condition.Type
		})
		if at < 0 {
			all, at = append(all, map[string]any{}), len(all)
		}
		before, _ := all[at].(map[string]any)
		all[at] = withCondition(before, condition, obj.GetGeneration())
	}
	return all
}

// withCondition is a copy of an entry, as a condition makes it.
func withCondition(before map[string]any, condition metav1.Condition, generation int64) map[string]any {
	entry := maps.Clone(before)
	entry["type"], entry["status"] = condition.Type, string(condition.Status)
	entry["reason"], entry["message"] = condition.Reason, condition.Message
	if condition.ObservedGeneration != 0 {
		generation = condition.ObservedGeneration
	}
	if generation != 0 {
		entry["observedGeneration"] = generation
	}
	if _, known := before["lastTransitionTime"]; !known || before["status"] != entry["status"] {
		when := condition.LastTransitionTime.Time
		if when.IsZero() {
			when = time.Now()
		}
		entry["lastTransitionTime"] = when.UTC().Format(time.RFC3339)
	}
	return entry
}
