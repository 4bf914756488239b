package dynamic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

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
	var body []byte
	if opts != nil {
		typed := *opts
		typed.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
		if body, err = json.Marshal(typed); err != nil {
			return nil, fmt.Errorf("delete %s %q: encode the options: %w", r, name, err)
		}
	}
	answer, err := r.send(ctx, http.MethodDelete, path, nil, jsonType, body)
	if err != nil {
		return nil, err
	}
	return deletedOf(answer)
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
