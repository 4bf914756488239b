package definitions

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// condition is an entry of status.conditions.
type condition struct{ kind, status, reason, message string }

// setCondition adds or replaces a condition. lastTransitionTime changes with the status only.
func setCondition(definition map[string]any, c condition, now string) {
	status := statusOf(definition)
	conditions, _ := status["conditions"].([]any)
	entry := map[string]any{
		"type": c.kind, "status": c.status, "reason": c.reason, "message": c.message, "lastTransitionTime": now,
	}
	at := slices.IndexFunc(conditions, func(item any) bool {
		old, _ := item.(map[string]any)
		return old["type"] == c.kind
	})
	if at < 0 {
		status["conditions"] = append(slices.Clone(conditions), entry)
		return
	}
	if old, _ := conditions[at].(map[string]any); old["status"] == c.status {
		entry["lastTransitionTime"] = old["lastTransitionTime"]
	}
	conditions = slices.Clone(conditions)
	conditions[at] = entry
	status["conditions"] = conditions
}

func isTrue(definition map[string]any, kind string) bool {
	conditions, _, _ := unstructured.NestedFieldNoCopy(definition, "status", "conditions")
	list, _ := conditions.([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		c, _ := item.(map[string]any)
		return c["type"] == kind && c["status"] == "True"
	})
}

func statusOf(definition map[string]any) map[string]any {
	status, isMap := definition["status"].(map[string]any)
	if !isMap {
		status = map[string]any{}
		definition["status"] = status
	}
	return status
}

func mapAt(obj map[string]any, path ...string) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	m, _ := value.(map[string]any)
	return m
}

func textAt(obj map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	text, _ := value.(string)
	return text
}

func nameOf(obj map[string]any) string { return textAt(obj, "metadata", "name") }

func groupOf(definition map[string]any) string { return textAt(definition, "spec", "group") }

func pluralOf(definition map[string]any) string { return textAt(definition, "spec", "names", "plural") }

func identityOf(obj map[string]any) (namespace, name string) {
	return textAt(obj, "metadata", "namespace"), nameOf(obj)
}

func isDeleting(obj map[string]any) bool { return textAt(obj, "metadata", "deletionTimestamp") != "" }

func finalizersOf(obj map[string]any) []string {
	names, _, _ := unstructured.NestedStringSlice(obj, "metadata", "finalizers")
	return names
}

func setFinalizers(obj map[string]any, names []string) {
	list := make([]any, 0, len(names))
	for _, name := range names {
		list = append(list, name)
	}
	mapAt(obj, "metadata")["finalizers"] = list
}
