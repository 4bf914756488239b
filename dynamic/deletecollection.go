package dynamic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeleteCollection asks the server to delete every object of the namespace, or of a cluster-scoped resource, that
// selected selects; nil selects all. It returns the objects as the server found them when it deleted them or began to:
// as after [Resource.Delete], finalizers and a grace period may keep them for a while. A server that answers with a mere
// Status, or with nothing, gives an empty page. Where selected has a Limit, the page's Continue goes on. An error leaves open which objects
// the server has deleted already. opts are as in Delete, and hold for each object.
func (r *Resource) DeleteCollection(ctx context.Context, opts *metav1.DeleteOptions, selected *metav1.ListOptions) (*Page[unstructured.Object], error) {
	const verb = "deletecollection"
	if r.mapping.Namespaced && r.choice == inNamespaces {
		return nil, r.refuse(verb, "", "the API deletes the collection of one namespace only: call it once for each, chosen with In")
	}
	request, err := r.collectionRequest(verb, selected)
	if err != nil {
		return nil, err
	}
	request.Method = http.MethodDelete
	if request.Body, err = deleteBody(opts); err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, r, err)
	}
	if request.Body != nil {
		request.Header = http.Header{"Content-Type": {jsonType}}
	}
	response, err := r.do(ctx, request, list)
	if err != nil {
		return nil, err
	}
	bare, err := beginsBare(response)
	if err != nil || bare {
		_ = response.Body.Close()
	}
	switch {
	case err != nil:
		return nil, r.brokenList(verb, request, fmt.Errorf("read the answer: %w", err))
	case bare:
		return &Page[unstructured.Object]{}, nil
	}
	page, err := readAll(r, verb, request, response, r.objects())
	var other *unstructured.NotListError
	if errors.As(err, &other) && isStatus(other.Object) {
		if _, err := success(other.Object); err != nil {
			return nil, r.brokenList(verb, request, err)
		}
		return &Page[unstructured.Object]{}, nil
	}
	return page, err
}

// maxBare bounds how long an answer without a kind may be.
const maxBare = 1 << 10

// beginsBare reports whether a body [isBare], and puts back what it has read of one that is not.
func beginsBare(response *http.Response) (bool, error) {
	head, err := io.ReadAll(io.LimitReader(response.Body, maxBare))
	if err != nil {
		return false, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), response.Body), response.Body}
	return len(head) < maxBare && isBare(head), nil
}
