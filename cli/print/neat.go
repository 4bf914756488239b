package print

import (
	"maps"
	"strings"

	"github.com/anykind/anykind/cli/internal/nested"
)

// Neat returns a copy of an object without fields of servers and controllers: the copy can be applied again. It shares unchanged
// parts with the argument.
func Neat(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		object["metadata"] = neatMetadata(metadata)
	}
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return object
	}
	switch nested.String(object, "apiVersion") + " " + nested.String(object, "kind") {
	case "v1 Service":
		service := without(spec, "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", "sessionAffinity")
		if spec["clusterIP"] == "None" {
			service["clusterIP"] = "None"
		}
		object["spec"] = service
	case "v1 Pod":
		object["spec"] = neatPod(spec)
	case "v1 PersistentVolumeClaim":
		object["spec"] = without(spec, "volumeName")
	case "v1 Namespace":
		delete(object, "spec")
	case "batch/v1 Job":
		object["spec"] = neatTemplate(neatJob(spec))
	default:
		object["spec"] = neatTemplate(spec)
	}
	return object
}

func without(fields map[string]any, names ...string) map[string]any {
	fields = maps.Clone(fields)
	for _, name := range names {
		delete(fields, name)
	}
	return fields
}

func neatMetadata(metadata map[string]any) map[string]any {
	metadata = without(metadata, "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
		"managedFields", "resourceVersion", "selfLink", "uid")
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		annotations = without(annotations, "kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision",
			"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller")
		metadata["annotations"] = annotations
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return metadata
}

func neatTemplate(spec map[string]any) map[string]any {
	template := nested.Map(spec, "template")
	metadata := nested.Map(template, "metadata")
	if metadata == nil {
		return spec
	}
	spec = maps.Clone(spec)
	template = maps.Clone(template)
	template["metadata"] = without(metadata, "creationTimestamp")
	spec["template"] = template
	return spec
}

// neatJob removes the generated selector and its labels.
func neatJob(spec map[string]any) map[string]any {
	if nested.Bool(spec, "manualSelector") {
		return spec
	}
	spec = without(spec, "selector")
	template := nested.Map(spec, "template")
	metadata := nested.Map(template, "metadata")
	labels := nested.Map(metadata, "labels")
	if labels == nil {
		return spec
	}
	template = maps.Clone(template)
	metadata = maps.Clone(metadata)
	metadata["labels"] = without(labels, "controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
	template["metadata"] = metadata
	spec["template"] = template
	return spec
}

// tokenVolume is the name prefix of the generated volume for the service account token of a pod.
const tokenVolume = "kube-api-access-"

func neatPod(spec map[string]any) map[string]any {
	spec = without(spec, "nodeName", "serviceAccount", "enableServiceLinks", "preemptionPolicy", "priority")
	filterList(spec, "volumes", func(volume map[string]any) bool {
		return !strings.HasPrefix(nested.String(volume, "name"), tokenVolume)
	})
	filterList(spec, "tolerations", func(toleration map[string]any) bool {
		key := nested.String(toleration, "key")
		return key != "node.kubernetes.io/not-ready" && key != "node.kubernetes.io/unreachable"
	})
	for _, field := range []string{"containers", "initContainers"} {
		containers, ok := spec[field].([]any)
		if !ok {
			continue
		}
		result := make([]any, len(containers))
		for i, value := range containers {
			container, ok := value.(map[string]any)
			if !ok {
				result[i] = value
				continue
			}
			container = maps.Clone(container)
			filterList(container, "volumeMounts", func(mount map[string]any) bool { return !strings.HasPrefix(nested.String(mount, "name"), tokenVolume) })
			result[i] = container
		}
		spec[field] = result
	}
	return spec
}

// filterList removes maps from a list, and removes an empty list.
func filterList(fields map[string]any, name string, keep func(map[string]any) bool) {
	list, ok := fields[name].([]any)
	if !ok {
		return
	}
	var kept []any
	for _, value := range list {
		if element, ok := value.(map[string]any); !ok || keep(element) {
			kept = append(kept, value)
		}
	}
	fields[name] = kept
	if len(kept) == 0 {
		delete(fields, name)
	}
}
