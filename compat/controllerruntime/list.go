package controllerruntime

import (
	"context"
	"fmt"
	"io"
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
	accept := jsonMedia
	if formOf(list) == metadataForm {
		accept = metadataListMedia
	}
	response, err := a.send(ctx, &request{
		method: http.MethodGet, mapping: mapping, target: target{namespace: namespace, collection: true}, options: options, accept: accept,
	})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body := io.LimitReader(response.Body, maxBody)
	switch list := list.(type) {
	case *unstructuredv1.UnstructuredList:
		err = decodeUnstructuredList(body, list)
	case *metav1.PartialObjectMetadataList:
		err = decodeMetadataList(body, list, mapping.GroupVersionKind)
	case runtime.Unstructured:
		err = decodeListObject(body, list)
	default:
		err = a.decodeTypedList(body, list)
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
	}
	return nil
}
