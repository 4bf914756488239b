package dynamic

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Get reads one object, or a subresource of it.
func (r *Resource) Get(ctx context.Context, name string, opts *metav1.GetOptions) (*unstructured.Object, error) {
	return getAs(ctx, r, name, opts, r.objects())
}

func getAs[T any](ctx context.Context, r *Resource, name string, opts *metav1.GetOptions, read reader[T]) (*T, error) {
	path, err := r.objectPath("get", name)
	if err != nil {
		return nil, err
	}
	query, err := queryOf(opts)
	if err != nil {
		return nil, err
	}
	return sendAs(ctx, r, &transport.Request{Method: http.MethodGet, Path: path, Query: query}, "", read)
}
