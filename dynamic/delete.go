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

// DeleteResult is the response to a delete. Exactly one of Object and Status is set. The object may still exist in both cases:
// finalizers and a grace period may keep it, with metadata.deletionTimestamp set.
type DeleteResult struct {
	// Object is the object's final state, or its current state during the deletion.
	Object *unstructured.Object
	// Status reports success. Its details may identify the deleted object, depending on the server.
	Status *metav1.Status
}

// Delete deletes an object. opts may set a grace period, preconditions and the propagation policy:
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/. To wait until the object is gone, call [Resource.Wait]
// with [Deleted].
func (r *Resource) Delete(ctx context.Context, name string, opts *metav1.DeleteOptions) (*DeleteResult, error) {
	request, err := objectRequest[metav1.DeleteOptions](r, "delete", name, nil)
	if err != nil {
		return nil, err
	}
	setDeleteOptions(request, r.defaults.deleteOptions(opts))
	return doAndDecode(ctx, r, request, r.limits(), r.decodeDeleteResult)
}

// setDeleteOptions sets opts as the body of a request. nil means no body.
func setDeleteOptions(request *transport.Request, opts *metav1.DeleteOptions) {
	if opts == nil {
		return
	}
	typed := *opts
	typed.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, _ := json.Marshal(typed) // cannot fail: only strings, numbers and bools
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

// successStatus converts the Status of a successful response. The Status may still report a failure.
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

// maxKindless is the maximum size of a body without a kind.
const maxKindless = 1 << 10

// isKindless reports whether a body is empty, null, or an object without kind and items. Aggregated API servers and webhooks
// send such bodies on success.
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

// DeleteCollection deletes all objects selected by list, in a single namespace or of a cluster-scoped resource. nil selects all
// objects. It returns the objects in their state at the deletion: as with [Resource.Delete], finalizers and a grace period may
// keep them. The page is empty if the server returns a Status or an empty body. If list has a Limit, pass the page's Continue
// to delete the next objects. After an error some objects may be deleted. opts apply to each object, as in Delete.
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
	case err == nil: // longer than maxKindless
	case err != io.EOF: // a wrapped EOF is a broken connection, not the end
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
