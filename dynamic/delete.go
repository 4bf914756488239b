package dynamic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/anykind/anykind/internal/sanitize"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deleted is what the server answered to a delete; exactly one of the two is there. Neither says for certain that the
// object is gone: finalizers and a grace period may keep it for a while, with metadata.deletionTimestamp set.
type Deleted struct {
	// Object is the object as it was last, or as it is while it is being deleted.
	Object *unstructured.Object
	// Status says that it was done and, if the server tells, to which object.
	Status *metav1.Status
}

// Delete asks the server to delete one object. opts may set a grace period, preconditions and the propagation policy:
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/.
func (r *Resource) Delete(ctx context.Context, name string, opts *metav1.DeleteOptions) (*Deleted, error) {
	path, err := r.objectPath("delete", name)
	if err != nil {
		return nil, err
	}
	body, err := deleteBody(opts)
	if err != nil {
		return nil, fmt.Errorf("delete %s %q: %w", r, name, err)
	}
	return sendAs(ctx, r, &transport.Request{Method: http.MethodDelete, Path: path, Body: body}, jsonType, r.deletions())
}

// deleteBody is what a request to delete carries: nothing where opts are nil.
func deleteBody(opts *metav1.DeleteOptions) ([]byte, error) {
	if opts == nil {
		return nil, nil
	}
	typed := *opts
	typed.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("encode the options: %w", err)
	}
	return body, nil
}

// deletions reads answers to a deletion.
func (r *Resource) deletions() reader[Deleted] {
	objects := r.objects()
	return reader[Deleted]{one: func(answer []byte) (*Deleted, error) {
		obj, err := objects.one(answer)
		switch {
		case err == nil && isStatus(obj):
			status, err := success(obj)
			if err != nil {
				return nil, err
			}
			return &Deleted{Status: status}, nil
		case err == nil:
			return &Deleted{Object: obj}, nil
		case isBare(answer):
			return &Deleted{Status: bareSuccess()}, nil
		default:
			return nil, err
		}
	}}
}

// success reads a Status that a deletion was answered with. A failure is an error, though the HTTP status was one of
// success.
func success(obj *unstructured.Object) (*metav1.Status, error) {
	status, err := statusOf(obj)
	if err != nil {
		return nil, err
	}
	if status.Status == metav1.StatusFailure {
		sanitize.Status(status)
		return nil, apierrors.FromObject(status)
	}
	return status, nil
}

// isBare reports whether an answer says nothing but that the request succeeded: it is empty, null, or an object without
// kind and items. Aggregated API servers and webhooks of their own answer like this.
func isBare(answer []byte) bool {
	if answer = bytes.TrimSpace(answer); len(answer) == 0 {
		return true
	}
	var object struct {
		Kind  string
		Items json.RawMessage
	}
	return (answer[0] == 'n' || answer[0] == '{') && json.Unmarshal(answer, &object) == nil && object.Kind == "" && object.Items == nil
}

func bareSuccess() *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusOK,
	}
}
