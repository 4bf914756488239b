package controllerruntime

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// list reads one page of objects.
func (a *apiClient) list(ctx context.Context, list client.ObjectList, namespace string, options *metav1.ListOptions) error {
	mapping, err := a.mapping(ctx, list)
	if err != nil {
		return err
	}
	response, err := a.send(ctx, &request{
		method: http.MethodGet, mapping: mapping, target: target{namespace: namespace, collection: true}, options: options, accept: a.acceptOf(list),
	})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	limits := a.limits()
	switch list := list.(type) {
	case *unstructuredv1.UnstructuredList:
		err = decodeUnstructuredList(response.Body, list, limits)
	case *metav1.PartialObjectMetadataList:
		err = decodeMetadataList(response.Body, list, mapping.GroupVersionKind, limits.OfPage())
	case runtime.Unstructured:
		err = decodeListObject(response.Body, list, limits.OfPage())
	default:
		err = a.decodeTypedList(response.Body, list, limits.OfPage())
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
	}
	return nil
}
