package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const generationField = "observedGeneration"

// SetStatus makes status the object's whole status and returns the object as the server stored it. status is what JSON
// can have, and is not changed.
//
// When it succeeds, the server's status was status, however old obj is: it is sent also where it equals obj's, which may
// have changed since obj was read. The server stores nothing, and wakes no watcher, if its own is equal.
//
// observedGeneration becomes obj's metadata.generation, by which readers tell whether the status is about the spec that
// they see; a value of its own in status stays, and nil leaves the field out, for kinds that have none.
//
// What others have changed in the object since obj was read stays, but not what they changed in its status: that is the
// controller's own. Where obj is gone, or another object has its name now, nothing is written and the error is one that
// apierrors.IsNotFound knows. r may be a handle on any namespace: the object says its own. It takes the verb patch, and
// get for when obj is out of date, on the status subresource, which a CustomResourceDefinition must enable. See
// https://github.com/kubernetes/community/blob/main/contributors/devel/sig-architecture/api-conventions.md#spec-and-status.
func SetStatus(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, status map[string]any) (*unstructured.Object, error) {
	return writeStatus(ctx, r, obj, status, func(_ any, _ bool, status map[string]any) []operation {
		status = maps.Clone(status)
		if generation, given := status[generationField]; given && generation == nil {
			delete(status, generationField)
		}
		return []operation{{"add", "/status", status}} // which replaces what is there: RFC 6902, section 4.1
	})
}

// PatchStatus merges status into the object's status and returns the object as the server stored it: maps are merged,
// lists and values replaced, and what is nil is removed (RFC 7386). When it succeeds, the server's status had every value
// of status, and none of the fields that are nil there, however old obj is; of obj's status nothing is sent. The rest is
// as with [SetStatus].
func PatchStatus(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, status map[string]any) (*unstructured.Object, error) {
	return writeStatus(ctx, r, obj, status, func(old any, found bool, status map[string]any) []operation {
		return mergePatch("/status", old, found, status)
	})
}

// writeStatus sends the operations that make an object's old status what status says; found is whether it has an old one.
func writeStatus(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, status map[string]any, operations func(old any, found bool, status map[string]any) []operation) (*unstructured.Object, error) {
	fail := func(err error) (*unstructured.Object, error) {
		return nil, fmt.Errorf("write the status of %s %q: %w", r, obj.GetName(), err)
	}
	status, err := observed(obj, status)
	if err != nil {
		return fail(err)
	}
	p := patching{at(r, obj).Sub("status"), obj.GetUID()}
	written, err := p.patch(ctx, obj, func(obj *unstructured.Object) []operation {
		old, found := obj.Object["status"]
		return append([]operation{sameObject(p.uid)}, operations(old, found, status)...)
	})
	if err == nil && written == nil {
		err = apierrors.NewNotFound(r.Mapping().GVR.GroupResource(), obj.GetName())
	}
	if err != nil {
		return fail(err)
	}
	return written, nil
}

// observed is a copy of status with the generation that it is about, and of the types that decoding makes.
func observed(obj *unstructured.Object, status map[string]any) (map[string]any, error) {
	if obj.GetUID() == "" {
		return nil, errors.New("the object has no uid, which the server gives")
	}
	copied := &unstructured.Object{Object: map[string]any{"status": map[string]any{}}}
	for field, value := range status {
		if err := unstructured.Set(copied, value, "status", field); err != nil {
			return nil, err
		}
	}
	filled, _ := copied.Object["status"].(map[string]any)
	if _, own := status[generationField]; !own && obj.GetGeneration() != 0 {
		filled[generationField] = obj.GetGeneration()
	}
	return filled, nil
}

// mergePatch returns the JSON patch that has the effect of a merge patch (RFC 7386) at path, of which old is known. The
// operations hold whatever the server's values are, and fail where its maps are others than old's: the caller then reads
// the object again. So each value of the merge patch is sent, also one that equals old's.
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
		inner, found := oldFields[field]
		all = append(all, mergePatch(path+"/"+pointer.Replace(field), inner, found, fields[field])...)
	}
	return all
}

// pointer escapes a field's name, https://www.rfc-editor.org/rfc/rfc6901#section-3.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func withoutNulls(fields map[string]any) map[string]any {
	left := make(map[string]any, len(fields))
	for field, value := range fields {
		if inner, isMap := value.(map[string]any); isMap {
			value = withoutNulls(inner)
		}
		if value != nil {
			left[field] = value
		}
	}
	return left
}
