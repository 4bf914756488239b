package inventory

import (
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/generated"
	"github.com/anykind/anykind/unstructured"
)

// MadeByController reports whether a controller made the object and makes it again: the object has an owner that is its
// controller, such as a Pod of a ReplicaSet, or it is in every namespace or beside every Service (the ConfigMap kube-root-ca.crt,
// the ServiceAccount default and the Endpoints of a Service with a selector). Secrets with a token of a ServiceAccount and Events
// count as well, because their content is of no use later.
func MadeByController(obj *unstructured.Object) bool {
	if slices.ContainsFunc(obj.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.Controller != nil && *owner.Controller
	}) {
		return true
	}
	switch kind := obj.GroupVersionKind().GroupKind(); kind.String() {
	case "Secret":
		return obj.Object["type"] == "kubernetes.io/service-account-token"
	case "Event", "Event.events.k8s.io":
		return true
	default:
		return generated.IsInEveryNamespace(kind, obj)
	}
}

// Portable returns a copy of obj that this or a different cluster accepts as a new object: without its status, without the fields
// of its metadata that a server sets, and without the values that a cluster allocates or defaults:
//
//   - of a Service, clusterIP and clusterIPs unless headless, nodePort of its ports, healthCheckNodePort, and defaults
//   - of a PersistentVolumeClaim, volumeName and the annotations of its binding
//   - of a PersistentVolume, uid and resourceVersion of claimRef
//   - of a Pod, nodeName, priority, overhead, the volume of its token with its mounts, default tolerations, and ephemeral containers, which
//     no new Pod may have
//   - of a Job without manualSelector, the selector and its labels
//   - of a Namespace, spec
//
// Owner references stay as they are: the UIDs in them are those of the cluster.
func Portable(obj *unstructured.Object) *unstructured.Object {
	clean := obj.DeepCopy()
	remove(clean.Object, "status")
	metadata := mapAt(clean.Object, "metadata")
	remove(metadata, "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
		"resourceVersion", "selfLink", "uid")
	annotations := mapAt(metadata, "annotations")
	remove(annotations, "kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision",
		"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller")
	removeEmpty(metadata, "annotations")
	spec := mapAt(clean.Object, "spec")
	template := mapAt(spec, "template")
	removeNull(mapAt(template, "metadata"), "creationTimestamp")
	switch clean.GroupVersionKind().GroupKind().String() {
	case "Service":
		cleanService(spec)
	case "PersistentVolumeClaim":
		remove(spec, "volumeName")
	case "PersistentVolume":
		remove(mapAt(spec, "claimRef"), "uid", "resourceVersion")
	case "Pod":
		cleanPod(spec)
	case "Namespace":
		remove(clean.Object, "spec")
	case "Job.batch":
		if spec["manualSelector"] != true {
			remove(spec, "selector")
			for _, labels := range []map[string]any{mapAt(metadata, "labels"), mapAt(mapAt(template, "metadata"), "labels")} {
				remove(labels, "controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
			}
			removeEmpty(metadata, "labels")
		}
	}
	return clean
}

func cleanService(spec map[string]any) {
	if spec["clusterIP"] != "None" {
		remove(spec, "clusterIP", "clusterIPs")
	}
	if spec["ipFamilyPolicy"] == "SingleStack" { // of the cluster, and so are the families
		remove(spec, "ipFamilies", "ipFamilyPolicy")
	}
	remove(spec, "healthCheckNodePort")
	removeDefault(spec, "internalTrafficPolicy", "Cluster")
	removeDefault(spec, "sessionAffinity", "None")
	for port := range mapsAt(spec, "ports") {
		remove(port, "nodePort")
	}
}

// tokenVolume is the name prefix of the volume that a server adds to a Pod for the token of its ServiceAccount.
const tokenVolume = "kube-api-access-"

func cleanPod(spec map[string]any) {
	remove(spec, "nodeName", "serviceAccount", "priority", "overhead", "ephemeralContainers")
	removeDefault(spec, "enableServiceLinks", true)
	removeDefault(spec, "preemptionPolicy", "PreemptLowerPriority")
	isToken := func(named map[string]any) bool {
		name, _ := named["name"].(string)
		return strings.HasPrefix(name, tokenVolume)
	}
	removeElements(spec, "volumes", isToken)
	removeElements(spec, "tolerations", func(toleration map[string]any) bool {
		key := toleration["key"]
		return (key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable") && toleration["tolerationSeconds"] == int64(300)
	})
	for _, field := range []string{"containers", "initContainers"} {
		for container := range mapsAt(spec, field) {
			removeElements(container, "volumeMounts", isToken)
		}
	}
}

func remove(fields map[string]any, names ...string) {
	for _, name := range names {
		delete(fields, name)
	}
}

func removeDefault(fields map[string]any, name string, value any) {
	if fields[name] == value {
		delete(fields, name)
	}
}

func removeNull(fields map[string]any, name string) {
	if fields[name] == nil {
		delete(fields, name)
	}
}

func removeEmpty(fields map[string]any, name string) {
	if values, ok := fields[name].(map[string]any); ok && len(values) == 0 {
		delete(fields, name)
	}
}

// removeElements removes maps from a list, and a list that has become empty.
func removeElements(fields map[string]any, name string, isRemoved func(map[string]any) bool) {
	list, ok := fields[name].([]any)
	if !ok {
		return
	}
	list = slices.DeleteFunc(list, func(value any) bool {
		element, ok := value.(map[string]any)
		return ok && isRemoved(element)
	})
	fields[name] = list
	if len(list) == 0 {
		delete(fields, name)
	}
}

// mapAt returns the map in a field, or nil.
func mapAt(fields map[string]any, name string) map[string]any {
	value, _ := fields[name].(map[string]any)
	return value
}

// mapsAt yields the maps of the list in a field.
func mapsAt(fields map[string]any, name string) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		list, _ := fields[name].([]any)
		for _, value := range list {
			if element, ok := value.(map[string]any); ok && !yield(element) {
				return
			}
		}
	}
}
