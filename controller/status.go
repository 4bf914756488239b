package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const generationField = "observedGeneration"

// SetStatus makes status the object's whole status and returns the object as the server stored it. status is what JSON
// can have, and is not changed. A status that obj has already is not written, so that a controller does not wake itself.
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
	return writeStatus(ctx, r, obj, status, func(there, status map[string]any) []operation {
		status = maps.Clone(status)
		if generation, given := status[generationField]; given && generation == nil {
			delete(status, generationField)
		}
		if there != nil && reflect.DeepEqual(there, status) {
			return nil
		}
		return []operation{{"add", "/status", status}} // which replaces what is there: RFC 6902, section 4.1
	})
}

// PatchStatus merges status into the object's status and returns the object as the server stored it: maps are merged,
// lists and values replaced, and what is nil is removed where obj has it (RFC 7386). The rest is as with [SetStatus].
func PatchStatus(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, status map[string]any) (*unstructured.Object, error) {
	return writeStatus(ctx, r, obj, status, func(there, status map[string]any) []operation {
		if there == nil {
			return merged("/status", nil, false, status)
		}
		return merged("/status", there, true, status)
	})
}

// writeStatus writes what changes tells of the status that is there and the one to be.
func writeStatus(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, status map[string]any, changes func(there, status map[string]any) []operation) (*unstructured.Object, error) {
	fail := func(err error) (*unstructured.Object, error) {
		return nil, fmt.Errorf("write the status of %s %q: %w", r, obj.GetName(), err)
	}
	status, err := observed(obj, status)
	if err != nil {
		return fail(err)
	}
	p := patching{at(r, obj).Sub("status"), obj.GetUID()}
	written, err := p.patch(ctx, obj, func(obj *unstructured.Object) []operation {
		there, _ := obj.Object["status"].(map[string]any)
		if changed := changes(there, status); changed != nil {
			return append([]operation{sameObject(p.uid)}, changed...)
		}
		return nil
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

// merged makes a merge patch's JSON patch: what is there is known, so that it can be tested.
func merged(path string, there any, found bool, patch any) []operation {
	fields, isMap := patch.(map[string]any)
	old, wasMap := there.(map[string]any)
	switch {
	case patch == nil && found:
		return []operation{{"remove", path, nil}}
	case patch == nil || reflect.DeepEqual(there, patch):
		return nil
	case !isMap:
		return []operation{{"add", path, patch}}
	case !found:
		return []operation{{"test", path, missing}, {"add", path, withoutNulls(fields)}}
	case !wasMap:
		return []operation{{"add", path, withoutNulls(fields)}}
	}
	var all []operation
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		inner, found := old[field]
		all = append(all, merged(path+"/"+pointer.Replace(field), inner, found, fields[field])...)
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
