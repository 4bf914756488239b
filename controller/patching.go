package controller

import (
	"context"
	"encoding/json"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// patching changes one object, and not another one of its name, by JSON patches that test what they go by.
type patching struct {
	of  *dynamic.Resource
	uid types.UID
}

// at is a handle on the namespace of an object.
func at(r *dynamic.Resource, obj *unstructured.Object) *dynamic.Resource {
	if namespace := obj.GetNamespace(); namespace != "" {
		return r.In(namespace)
	}
	return r
}

// operation is one of a JSON patch, https://www.rfc-editor.org/rfc/rfc6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// sameObject makes a patch fail that would hit another object of the same name.
func sameObject(uid types.UID) operation {
	return operation{"test", "/metadata/uid", uid}
}

// missing is the value of a test that something is not there.
var missing = json.RawMessage("null")

// maxPatches bounds how often a patch is tried that somebody else keeps overtaking.
const maxPatches = 10

// patch patches the object until patchOf has nothing left to patch or the server has applied it. It returns the object as
// it is then, nil if it is gone.
func (p patching) patch(ctx context.Context, obj *unstructured.Object, patchOf func(*unstructured.Object) []operation) (*unstructured.Object, error) {
	name, last := obj.GetName(), ""
	backoff := retry.Backoff{Min: 10 * time.Millisecond, Max: time.Second} // while others keep writing
	var refused error
	for n := range maxPatches {
		operations := patchOf(obj)
		if len(operations) == 0 {
			return obj, nil
		}
		patch, err := json.Marshal(operations)
		if err != nil {
			return nil, err
		}
		if string(patch) == last && !retry.IsConflict(refused) {
			return nil, refused // not because obj was out of date
		}
		if n > 0 && retry.IsConflict(refused) {
			if err := backoff.Wait(ctx, n); err != nil {
				return nil, err
			}
		}
		last = string(patch)
		obj, refused = p.of.Patch(ctx, name, types.JSONPatchType, patch, nil)
		if !apierrors.IsInvalid(refused) && !retry.IsConflict(refused) {
			return obj, ignoreObjectNotFound(refused)
		}
		// A test failed, or the object is being deleted.
		obj, err = p.of.Get(ctx, name, nil)
		if err != nil {
			return nil, ignoreObjectNotFound(err)
		}
		if obj.GetUID() != p.uid {
			return nil, nil
		}
	}
	return nil, refused
}
