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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
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
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/. To wait until the object is gone, call [Handle.Wait]
// with [Deleted].
func (e *endpoint) Delete(ctx context.Context, name string, opts *metav1.DeleteOptions) (result *DeleteResult, err error) {
	request, err := e.objectRequest("delete", name, nil)
	if err != nil {
		return nil, err
	}
	setDeleteOptions(request, e.defaults.deleteOptions(opts))
	err = e.doAndDecode(ctx, request, func(_ http.Header, body []byte) error {
		result, err = e.decodeDeleteResult(body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
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

func (e *endpoint) decodeDeleteResult(body []byte) (*DeleteResult, error) {
	item, err := wholeObjects{}.decodeItem(e, body)
	obj := item.object
	switch {
	case err == nil && isStatus(obj):
		status, err := successStatus(obj)
		return &DeleteResult{Status: status}, err
	case err == nil:
		return &DeleteResult{Object: e.represent(obj)}, nil
	case len(body) < maxKindless && isKindless(body):
		return &DeleteResult{Status: &metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusOK,
		}}, nil
	default:
		return nil, err
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
// objects. It returns the objects in their state at the deletion: as with [Handle.Delete], finalizers and a grace period may
// keep them. The page is empty if the server returns a Status or an empty body. If list has a Limit, pass the page's Continue
// to delete the next objects. After an error some objects may be deleted. opts apply to each object, as in Delete.
func (h *Handle[T]) DeleteCollection(ctx context.Context, opts *metav1.DeleteOptions, list *metav1.ListOptions) (*Page[T], error) {
	return h.readPage(deleteCollection, func(handle func(item) error) (metav1.TypeMeta, metav1.ListMeta, error) {
		return h.deleteCollection(ctx, h.codec.form(), opts, list, handle)
	})
}

const deleteCollection = "deletecollection"

// deleteCollection calls handle for each object of the response.
func (e *endpoint) deleteCollection(
	ctx context.Context, form form, opts *metav1.DeleteOptions, list *metav1.ListOptions, handle func(item) error,
) (typeMeta metav1.TypeMeta, meta metav1.ListMeta, err error) {
	if e.isNamespaced() && e.scope == allNamespaces {
		err := e.invalid(deleteCollection, "", "the API deletes the collection of one namespace only (call it once for each, chosen with Namespace)")
		return typeMeta, meta, err
	}
	request, err := e.collectionRequest(deleteCollection, list)
	if err != nil {
		return typeMeta, meta, err
	}
	setDeleteOptions(request, e.defaults.deleteOptions(opts))
	response, err := e.do(ctx, request, true)
	if err != nil {
		return typeMeta, meta, err
	}
	defer response.Body.Close()
	body := bufio.NewReaderSize(response.Body, maxKindless)
	switch head, err := body.Peek(maxKindless); {
	case err == nil: // longer than maxKindless
	case err != io.EOF: // a wrapped EOF is a broken connection, not the end
		return typeMeta, meta, e.decodeError(deleteCollection, fmt.Errorf("read the response: %w", err))
	case isKindless(head):
		return typeMeta, meta, nil
	}
	typeMeta, meta, err = e.handleItems(deleteCollection, form.readItems(e, body, nil, true), handle)
	if other, ok := errors.AsType[*unstructured.NotListError](err); ok && isStatus(other.Object) {
		if _, err = successStatus(other.Object); err != nil {
			err = e.decodeError(deleteCollection, err)
		}
	}
	return typeMeta, meta, err
}
