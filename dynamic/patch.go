package dynamic

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Patch changes part of an object and returns it as the server stored it. The patch is JSON of the form that its type
// says: types.JSONPatchType (RFC 6902), types.MergePatchType (RFC 7386), types.StrategicMergePatchType (built-in kinds
// only) or types.ApplyYAMLPatchType, for which [Resource.Apply] is the easier call. See
// https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/.
func (r *Resource) Patch(ctx context.Context, name string, patchType types.PatchType, patch []byte, opts *metav1.PatchOptions) (*unstructured.Object, error) {
	return patchAs(ctx, r, name, patchType, patch, opts, r.objects())
}

func patchAs[T any](ctx context.Context, r *Resource, name string, patchType types.PatchType, patch []byte, opts *metav1.PatchOptions, read reader[T]) (*T, error) {
	path, err := r.objectPath("patch", name)
	if err != nil {
		return nil, err
	}
	switch patchType {
	case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType:
	default:
		return nil, r.refuse("patch", name, "the patch type %q is none of apimachinery's types.*PatchType for JSON", patchType)
	}
	if len(patch) == 0 {
		return nil, r.refuse("patch", name, "the patch is empty: a patch that changes nothing is {} or, as a JSON patch, []")
	}
	query, err := queryOf(opts)
	if err != nil {
		return nil, err
	}
	request := &transport.Request{Method: http.MethodPatch, Path: path, Query: query, Body: patch}
	return sendAs(ctx, r, request, string(patchType), read)
}
