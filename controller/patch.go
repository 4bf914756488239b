package controller

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// operation is an operation of a JSON patch, https://www.rfc-editor.org/rfc/rfc6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// missing is the value of a test operation for an absent field.
var missing = json.RawMessage("null")

// maxPatches limits the attempts to patch an object under concurrent changes.
const maxPatches = 10

// patchObject sends the patch operationsFor(obj) until the server has applied it or no operations are left. After a conflict it
// continues with the object's current state. It returns the resulting object, or nil if the object is gone. The patches test the
// UID, so a new object of the same name is not changed. r may be a handle on any namespace.
func patchObject(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, operationsFor func(*unstructured.Object) []operation) (*unstructured.Object, error) {
	if namespace := obj.GetNamespace(); namespace != "" {
		r = r.Namespace(namespace)
	}
	name := obj.GetName()
	uid := obj.GetUID()
	last := ""
	backoff := retry.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	var patchErr error
	for n := range maxPatches {
		operations := operationsFor(obj)
		if len(operations) == 0 {
			return obj, nil
		}
		patch, err := json.Marshal(append([]operation{{"test", "/metadata/uid", uid}}, operations...))
		if err != nil {
			return nil, err
		}
		if string(patch) == last && !retry.IsConflict(patchErr) {
			return nil, patchErr // not because obj was stale
		}
		if n > 0 && retry.IsConflict(patchErr) {
			if err := backoff.Wait(ctx, n); err != nil {
				return nil, err
			}
		}
		last = string(patch)
		obj, patchErr = r.Patch(ctx, name, types.JSONPatchType, patch, nil)
		recordObserved(ctx, r, obj)
		if !apierrors.IsInvalid(patchErr) && !retry.IsConflict(patchErr) {
			return obj, utilerrors.FilterOut(patchErr, retry.IsObjectNotFound)
		}
		// A test failed, or the object is being deleted.
		if obj, err = r.Get(ctx, name, nil); err != nil {
			return nil, utilerrors.FilterOut(err, retry.IsObjectNotFound)
		}
		recordObserved(ctx, r, obj)
		if obj.GetUID() != uid {
			return nil, nil
		}
	}
	return nil, patchErr
}
