package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

const generationField = "observedGeneration"

// SetStatus replaces the object's whole status and returns the object as stored by the server. status has JSON types and is not
// changed.
//
// It always sends status, even if it equals obj's possibly stale status: after a success the server's status was status. If the
// server's status is equal, the server stores nothing and notifies no watcher.
//
// observedGeneration is set to obj's metadata.generation, so readers can tell whether the status belongs to the current spec. A
// value in status takes precedence; nil omits the field, for kinds without it.
//
// Concurrent changes outside the status are kept. If obj is gone or replaced by a new object of the same name, nothing is written
// and apierrors.IsNotFound reports true for the error. r may be a handle on any namespace: obj determines its own. The verb
// patch, and get for stale objects, is needed on the status subresource. A CustomResourceDefinition must enable the subresource.
// See https://github.com/kubernetes/community/blob/main/contributors/devel/sig-architecture/api-conventions.md#spec-and-status.
func SetStatus(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, status map[string]any) (*unstructured.Object, error) {
	return writeStatus(ctx, r, obj, status, func(_ any, _ bool, status map[string]any) []operation {
		status = maps.Clone(status)
		if generation, found := status[generationField]; found && generation == nil {
			delete(status, generationField)
		}
		return []operation{{"add", "/status", status}} // replaces an existing value: RFC 6902, section 4.1
	})
}

// PatchStatus merges status into the object's status by RFC 7386: maps are merged, lists and scalars replaced, and nil fields
// removed. It returns the object as stored by the server. After a success the server's status had every value of status and none
// of its nil fields, even if obj is stale: nothing of obj's status is sent. Otherwise it is like [SetStatus].
func PatchStatus(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, status map[string]any) (*unstructured.Object, error) {
	return writeStatus(ctx, r, obj, status, func(old any, found bool, status map[string]any) []operation {
		return mergePatch("/status", old, found, status)
	})
}

// writeStatus sends operations(old, found, status). old is the object's status; found reports whether it has a status.
func writeStatus(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, status map[string]any, operations func(old any, found bool, status map[string]any) []operation) (*unstructured.Object, error) {
	status, err := normalizeStatus(obj, status)
	var written *unstructured.Object
	if err == nil {
		written, err = patchObject(ctx, r.Subresource("status"), obj, func(obj *unstructured.Object) []operation {
			old, found := obj.Object["status"]
			return operations(old, found, status)
		})
	}
	if err == nil && written == nil {
		err = apierrors.NewNotFound(r.APIResource().GVR.GroupResource(), obj.GetName())
	}
	if err != nil {
		return nil, fmt.Errorf("write status of %s %q: %w", r, obj.GetName(), err)
	}
	return written, nil
}

// normalizeStatus returns a copy of status with observedGeneration and with the types of decoded JSON.
func normalizeStatus(obj *unstructured.Object, status map[string]any) (map[string]any, error) {
	if obj.GetUID() == "" {
		return nil, errors.New("the object has no uid (the server sets it)")
	}
	normalized := map[string]any{}
	holder := &unstructured.Object{Object: map[string]any{"status": normalized}}
	for field, value := range status {
		if err := unstructured.Set(holder, value, "status", field); err != nil {
			return nil, err
		}
	}
	if _, found := status[generationField]; !found && obj.GetGeneration() != 0 {
		normalized[generationField] = obj.GetGeneration()
	}
	return normalized, nil
}

// mergePatch converts a merge patch (RFC 7386) for the value old at path to a JSON patch. It sends every value of the merge
// patch, even if old has the same value: the server's value may differ. The patch fails if the server's maps differ from old's;
// the caller then reads the object again.
func mergePatch(path string, old any, found bool, patch any) []operation {
	fields, isMap := patch.(map[string]any)
	oldFields, wasMap := old.(map[string]any)
	switch {
	case patch == nil && found:
		return []operation{{"remove", path, nil}}
	case patch == nil:
		return []operation{{"test", path, missing}}
	case !isMap:
		return []operation{{"add", path, patch}}
	case old == nil:
		return []operation{{"test", path, missing}, {"add", path, withoutNulls(fields)}}
	case !wasMap || len(fields) == 0 && len(oldFields) == 0:
		return []operation{{"test", path, old}, {"add", path, withoutNulls(fields)}}
	case len(fields) == 0:
		return []operation{{"test", path, old}}
	}
	var all []operation
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		oldField, found := oldFields[field]
		all = append(all, mergePatch(path+"/"+pointerEscaper.Replace(field), oldField, found, fields[field])...)
	}
	return all
}

// pointerEscaper escapes a field name, https://www.rfc-editor.org/rfc/rfc6901#section-3.
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func withoutNulls(fields map[string]any) map[string]any {
	result := make(map[string]any, len(fields))
	for field, value := range fields {
		if nested, isMap := value.(map[string]any); isMap {
			value = withoutNulls(nested)
		}
		if value != nil {
			result[field] = value
		}
	}
	return result
}

// MergeConditions returns obj's status.conditions merged with conditions, for [SetStatus] and [PatchStatus]. It does not change
// obj. Existing conditions keep their order and their fields unknown to metav1.Condition. New conditions come last.
//
// lastTransitionTime changes only with the condition's status: to LastTransitionTime of the new condition, or to now if it is
// zero. An observedGeneration of 0 becomes obj's metadata.generation. See
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties.
func MergeConditions(obj *unstructured.Object, conditions ...metav1.Condition) []any {
	all, _, _ := unstructured.Get[[]any](obj, "status", "conditions") // a value of a different type is replaced
	for _, condition := range conditions {
		i := slices.IndexFunc(all, func(item any) bool {
			entry, _ := item.(map[string]any)
			return entry["type"] == condition.Type
		})
		if i < 0 {
			i = len(all)
			all = append(all, map[string]any{})
		}
		old, _ := all[i].(map[string]any)
		all[i] = mergeCondition(old, condition, obj.GetGeneration())
	}
	return all
}

func mergeCondition(old map[string]any, condition metav1.Condition, generation int64) map[string]any {
	entry := maps.Clone(old)
	entry["type"] = condition.Type
	entry["status"] = string(condition.Status)
	entry["reason"] = condition.Reason
	entry["message"] = condition.Message
	if condition.ObservedGeneration != 0 {
		generation = condition.ObservedGeneration
	}
	if generation != 0 {
		entry[generationField] = generation
	}
	if _, found := old["lastTransitionTime"]; !found || old["status"] != entry["status"] {
		transition := condition.LastTransitionTime.Time
		if transition.IsZero() {
			transition = time.Now()
		}
		entry["lastTransitionTime"] = transition.UTC().Format(time.RFC3339)
	}
	return entry
}
