package dynamic

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Update replaces an object and returns it as the server stored it; obj stays as it is. Where obj has a
// metadata.resourceVersion and the object has changed since, the error is one that apierrors.IsConflict knows: read,
// change and update again. Sub("status").Update writes the status alone.
func (r *Resource) Update(ctx context.Context, obj *unstructured.Object, opts *metav1.UpdateOptions) (*unstructured.Object, error) {
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
	return target.sendObject(ctx, http.MethodPut, path, query, jsonType, obj)
}
