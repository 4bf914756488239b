package dynamic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Deleted is what the server answered to a delete; exactly one of the two is there. Neither says for certain that the
// object is gone: finalizers and a grace period may keep it for a while, with metadata.deletionTimestamp set.
type Deleted struct {
	// Object is the object as it was last, or as it is while it is being deleted.
	Object *unstructured.Object
	// Status says that it was done, and to which object.
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
	answer, err := sendAs(ctx, r, &transport.Request{Method: http.MethodDelete, Path: path, Body: body}, jsonType, r.objects())
	if err != nil {
		return nil, err
	}
	return deletedOf(answer)
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

func deletedOf(answer *unstructured.Object) (*Deleted, error) {
	if !isStatus(answer) {
		return &Deleted{Object: answer}, nil
	}
	status, err := statusOf(answer)
	if err != nil {
		return nil, err
	}
	return &Deleted{Status: status}, nil
}
