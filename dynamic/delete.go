package dynamic

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeleteResult is the response to a delete: exactly one of Object and Status is set. With either the object may still
// exist: finalizers and a grace period may keep it for a while, with metadata.deletionTimestamp set.
type DeleteResult struct {
	// Object is the final state of the object, or its current state while it is being deleted.
	Object *unstructured.Object
	// Status reports success and, depending on the server, which object was deleted.
	Status *metav1.Status
}

// Delete deletes one object. opts may set a grace period, preconditions and the propagation policy:
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/. To wait until the object is gone, call
// [Resource.Wait] with [Deleted].
func (r *Resource) Delete(ctx context.Context, name string, opts *metav1.DeleteOptions) (*DeleteResult, error) {
	request, err := objectRequest[metav1.DeleteOptions](r, "delete", name, nil)
	if err != nil {
		return nil, err
	}
	setDeleteOptions(request, r.defaults.deleteOptions(opts))
	return doAndDecode(ctx, r, request, r.limits(), r.decodeDeleteResult)
}

// setDeleteOptions makes opts the body of a request; nil means none.
func setDeleteOptions(request *transport.Request, opts *metav1.DeleteOptions) {
	if opts == nil {
		return
	}
	typed := *opts
	typed.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, _ := json.Marshal(typed) // it has only texts, numbers and bools
	setBody(request, jsonType, body)
}

func (r *Resource) decodeDeleteResult(limits unstructured.Limits, body []byte) (*DeleteResult, error) {
	obj, err := r.objectDecoder().object(limits, body)
	switch {
	case err == nil && isStatus(obj):
		status, err := successStatus(obj)
		return &DeleteResult{Status: status}, err
	case err != nil && len(body) < maxKindless && isKindless(body):
		return &DeleteResult{Status: &metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusOK,
		}}, nil
	default:
		return &DeleteResult{Object: obj}, err
	}
}

// successStatus converts the Status of a response with a success code. It may report a failure all the same.
func successStatus(obj *unstructured.Object) (*metav1.Status, error) {
	status, err := decodeStatus(obj)
	if err != nil {
		return nil, err
	}
	if status.Status == metav1.StatusFailure {
		return nil, statusError(status)
	}
	return status, nil
}

// maxKindless is the size below which a body may be without a kind.
const maxKindless = 1 << 10

// isKindless reports whether a body holds nothing beyond success: it is empty, null, or an object without kind and items.
// Aggregated API servers and webhooks send such bodies.
func isKindless(body []byte) bool {
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return true
	}
	var object struct {
		Kind  string
		Items json.RawMessage
	}
	return (body[0] == 'n' || body[0] == '{') && json.Unmarshal(body, &object) == nil && object.Kind == "" && object.Items == nil
}

// DeleteCollection deletes all objects that list selects, of one namespace or of a cluster-scoped resource; nil selects
// all. It returns the objects in the state in which the server deleted them or began to: as after [Resource.Delete],
// finalizers and a grace period may keep them for a while. The page is empty if the server returns a Status or nothing. If
// list has a Limit, pass the page's Continue to delete the next objects. After an error some objects may be deleted. opts
// are as in Delete and apply to each object.
func (r *Resource) DeleteCollection(ctx context.Context, opts *metav1.DeleteOptions, list *metav1.ListOptions) (*Page[unstructured.Object], error) {
	return deleteCollectionAs(ctx, r, opts, list, r.objectDecoder())
}

func deleteCollectionAs[T any](ctx context.Context, r *Resource, opts *metav1.DeleteOptions, list *metav1.ListOptions, decoder decoder[T]) (*Page[T], error) {
	const verb = "deletecollection"
	if r.isNamespaced() && r.scope == allNamespaces {
		return nil, r.invalid(verb, "", "the API deletes the collection of one namespace only (call it once for each, chosen with Namespace)")
	}
	request, err := r.collectionRequest(verb, list)
	if err != nil {
		return nil, err
	}
	setDeleteOptions(request, r.defaults.deleteOptions(opts))
	response, err := r.do(ctx, request, true)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body := bufio.NewReaderSize(response.Body, maxKindless)
	switch head, err := body.Peek(maxKindless); {
	case err == nil: // it is longer
	case err != io.EOF: // a wrapped EOF is a connection that broke, not the end
		return nil, r.decodeError(verb, fmt.Errorf("read the response: %w", err))
	case isKindless(head):
		return &Page[T]{}, nil
	}
	page, err := decodePage(r, verb, body, decoder)
	if other, ok := errors.AsType[*unstructured.NotListError](err); ok && isStatus(other.Object) {
		if _, err := successStatus(other.Object); err != nil {
			return nil, r.decodeError(verb, err)
		}
		return &Page[T]{}, nil
	}
	return page, err
}
