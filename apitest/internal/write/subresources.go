package write

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// coerce decodes an object of the request's kind.
func (op *operation) coerce(obj map[string]any) (decoded map[string]any, unknown []string, err error) {
	if kind := op.kind(); kind != op.resource.GroupVersionKind() {
		return op.coerceBuiltin(kind, obj)
	}
	return op.rules.coerce(op, obj)
}

// resetMetadata copies the metadata of old to obj, except for managedFields.
func resetMetadata(obj, old *unstructuredv1.Unstructured) {
	managed := obj.GetManagedFields()
	version := obj.GetResourceVersion()
	obj.Object["metadata"] = old.DeepCopy().Object["metadata"]
	obj.SetManagedFields(managed)
	obj.SetResourceVersion(version)
}

// keepExceptEphemeral resets all of a pod except its ephemeral containers.
func keepExceptEphemeral(obj, old *unstructuredv1.Unstructured) {
	containers, found, _ := unstructuredv1.NestedSlice(obj.Object, "spec", "ephemeralContainers")
	before := old.DeepCopy()
	resetMetadata(obj, old)
	obj.Object["status"] = before.Object["status"]
	obj.Object["spec"] = before.Object["spec"]
	spec := nested.EnsureMap(obj.Object, "spec")
	setOrDelete(spec, "ephemeralContainers", containers, found)
}

// keepExceptResources resets all of a pod except the resources of its containers. Added, removed or renamed containers are kept
// for validation to reject.
func keepExceptResources(obj, old *unstructuredv1.Unstructured) {
	before := old.DeepCopy()
	spec := nested.EnsureMap(before.Object, "spec")
	for _, name := range []string{"containers", "initContainers"} {
		containers, _, _ := unstructuredv1.NestedSlice(obj.Object, "spec", name)
		kept := nested.Slice(spec, name)
		if len(containers) != len(kept) {
			return
		}
		for i := range containers {
			from, _ := containers[i].(map[string]any)
			to, _ := kept[i].(map[string]any)
			if from["name"] != to["name"] {
				return
			}
			for _, part := range []string{"resources", "resizePolicy"} {
				value, found := from[part]
				setOrDelete(to, part, value, found)
			}
		}
	}
	resetMetadata(obj, old)
	obj.Object["status"] = before.Object["status"]
	obj.Object["spec"] = spec
}

// keepExceptConditions resets all of a CertificateSigningRequest except its status conditions.
func keepExceptConditions(op *operation, obj, old *unstructuredv1.Unstructured) {
	conditions, found, _ := unstructuredv1.NestedSlice(obj.Object, "status", "conditions")
	now := op.now().UTC().Format("2006-01-02T15:04:05Z")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		for _, name := range []string{"lastUpdateTime", "lastTransitionTime"} {
			if condition != nil && condition[name] == nil {
				condition[name] = now
			}
		}
	}
	before := old.DeepCopy()
	obj.Object["spec"] = before.Object["spec"]
	obj.Object["status"] = before.Object["status"]
	setOrDelete(nested.EnsureMap(obj.Object, "status"), "conditions", conditions, found)
}

// setRequestor sets the requesting user of a CertificateSigningRequest.
func (op *operation) setRequestor(obj *unstructuredv1.Unstructured) {
	spec := nested.EnsureMap(obj.Object, "spec")
	user := op.req.User
	for _, name := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, name)
	}
	if user.Name != "" {
		spec["username"] = user.Name
	}
	if user.UID != "" {
		spec["uid"] = user.UID
	}
	if len(user.Groups) > 0 {
		spec["groups"] = anySlice(user.Groups)
	}
	if len(user.Extra) > 0 {
		extra := map[string]any{}
		for name, values := range user.Extra {
			extra[name] = anySlice(values)
		}
		spec["extra"] = extra
	}
}

func anySlice(values []string) []any {
	items := make([]any, len(values))
	for i, value := range values {
		items[i] = value
	}
	return items
}

func succeeded(code int) map[string]any {
	status := successStatus(nil)
	status["code"] = int64(code)
	status["status"] = metav1.StatusSuccess
	return status
}
