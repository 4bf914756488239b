// Package generated recognizes objects created by Kubernetes' controllers without an owner.
package generated

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

// IsInEveryNamespace reports whether controllers create the object in every namespace, or for every Service. kind is the kind of obj.
func IsInEveryNamespace(kind schema.GroupKind, obj *unstructured.Object) bool {
	switch kind.String() {
	case "ConfigMap":
		return obj.GetName() == "kube-root-ca.crt"
	case "ServiceAccount":
		return obj.GetName() == "default"
	default:
		return IsEndpoints(kind, obj)
	}
}

// IsEndpoints reports whether obj is the Endpoints that a controller creates for a Service with a selector. They have its labels.
func IsEndpoints(kind schema.GroupKind, obj *unstructured.Object) bool {
	return kind.String() == "Endpoints" && obj.GetLabels()["endpoints.kubernetes.io/managed-by"] != ""
}

// IsEvent reports whether a kind is the Event of Kubernetes. Further groups may define a kind Event, too.
func IsEvent(kind schema.GroupKind) bool {
	return kind.String() == "Event" || kind.String() == "Event.events.k8s.io"
}
