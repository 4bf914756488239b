package dynamic

import (
	"fmt"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// isStatus reports whether obj is a Status, which some aggregated API servers send without an apiVersion.
func isStatus(obj *unstructured.Object) bool {
	return obj.GetKind() == "Status" && (obj.GetAPIVersion() == "v1" || obj.GetAPIVersion() == "")
}

// statusOf reads an object of kind Status.
func statusOf(obj *unstructured.Object) (*metav1.Status, error) {
	status := &metav1.Status{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, status); err != nil {
		return nil, fmt.Errorf("read the Status that the server answered: %w", err)
	}
	return status, nil
}
