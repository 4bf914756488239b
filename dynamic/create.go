package dynamic

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Create writes a new object and returns it as the server stored it; obj stays as it is. An object that has
// metadata.generateName and no name gets its name from the server. On a subresource, such as "eviction", the object's
// name says which object it is for. An object without kind and apiVersion gets those of the resource.
func (r *Resource) Create(ctx context.Context, obj *unstructured.Object, opts *metav1.CreateOptions) (*unstructured.Object, error) {
	return createAs(ctx, r, obj, opts, r.objects())
}

func createAs[T any](ctx context.Context, r *Resource, obj *unstructured.Object, opts *metav1.CreateOptions, read reader[T]) (*T, error) {
	target, err := r.holding("create", obj)
	if err != nil {
		return nil, err
	}
	path, err := target.creationPath(obj.GetName())
	if err != nil {
		return nil, err
	}
	query, err := queryOf(opts)
	if err != nil {
		return nil, err
	}
	request := &transport.Request{Method: http.MethodPost, Path: path, Query: query}
	return sendObjectAs(ctx, target, request, jsonType, obj, read)
}

// creationPath is where a new object is posted: the collection, or a subresource of the object of that name.
func (r *Resource) creationPath(name string) (string, error) {
	switch {
	case r.sub != "":
		return r.objectPath("create", name)
	case r.mapping.Namespaced && r.choice == inNamespaces:
		return "", r.refuse("create", name, "the object names no namespace, and neither does the handle: choose one with In")
	default:
		return r.collectionPath("create")
	}
}
