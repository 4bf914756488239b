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
	case "Endpoints":
		return obj.GetLabels()["endpoints.kubernetes.io/managed-by"] != ""
	default:
		return false
	}
}

// IsEvent reports whether a kind is the Event of Kubernetes. Further groups may define a kind Event, too.
func IsEvent(kind schema.GroupKind) bool {
	return kind.String() == "Event" || kind.String() == "Event.events.k8s.io"
}
