package dynamic

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Apply makes the fields that obj sets what obj says, creates the object where there is none, and returns it as the
// server stored it; obj stays as it is. opts.FieldManager must say who owns those fields. Fields that another manager
// owns with another value are an [*ApplyConflictError], which apierrors.IsConflict knows, unless opts.Force takes them
// over. See https://kubernetes.io/docs/reference/using-api/server-side-apply/.
func (r *Resource) Apply(ctx context.Context, obj *unstructured.Object, opts *metav1.ApplyOptions) (*unstructured.Object, error) {
	return applyAs(ctx, r, obj, opts, r.objects())
}

func applyAs[T any](ctx context.Context, r *Resource, obj *unstructured.Object, opts *metav1.ApplyOptions, read reader[T]) (*T, error) {
	target, err := r.holding("patch", obj)
	if err != nil {
		return nil, err
	}
	name := obj.GetName()
	path, err := target.objectPath("patch", name)
	if err != nil {
		return nil, err
	}
	if opts == nil || opts.FieldManager == "" {
		return nil, r.refuse("patch", name, "apply needs a field manager: set ApplyOptions.FieldManager to your program's name")
	}
	if len(obj.GetManagedFields()) > 0 {
		return nil, r.refuse("patch", name, "an object to apply has no metadata.managedFields: "+
			"apply the fields you want, not an object read from the server")
	}
	query, err := queryOf(opts)
	if err != nil {
		return nil, err
	}
	request := &transport.Request{Method: http.MethodPatch, Path: path, Query: query}
	return sendObjectAs(ctx, target, request, string(types.ApplyYAMLPatchType), obj, read)
}
