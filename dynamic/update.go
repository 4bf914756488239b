package dynamic

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Update replaces an object and returns it as the server stored it; obj stays as it is. Where obj has a
// metadata.resourceVersion and the object has changed since, the error is one that apierrors.IsConflict knows: read,
// change and update again. Sub("status").Update writes the status alone.
func (r *Resource) Update(ctx context.Context, obj *unstructured.Object, opts *metav1.UpdateOptions) (*unstructured.Object, error) {
	return updateAs(ctx, r, obj, opts, r.objects())
}

func updateAs[T any](ctx context.Context, r *Resource, obj *unstructured.Object, opts *metav1.UpdateOptions, read reader[T]) (*T, error) {
	target, err := r.holding("update", obj)
	if err != nil {
		return nil, err
	}
	path, err := target.objectPath("update", obj.GetName())
	if err != nil {
		return nil, err
	}
	query, err := queryOf(opts)
	if err != nil {
		return nil, err
	}
	request := &transport.Request{Method: http.MethodPut, Path: path, Query: query}
	return sendObjectAs(ctx, target, request, jsonType, obj, read)
}
