package definitions

import (
	"slices"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// condition is an entry of status.conditions.
type condition struct{ kind, status, reason, message string }

// setCondition adds or replaces a condition. lastTransitionTime changes with the status only.
func setCondition(definition map[string]any, c condition, now string) {
	status := nested.EnsureMap(definition, "status")
	conditions := nested.Slice(status, "conditions")
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

func nameOf(obj map[string]any) string { return nested.String(obj, "metadata", "name") }

func groupOf(definition map[string]any) string { return nested.String(definition, "spec", "group") }

func pluralOf(definition map[string]any) string {
	return nested.String(definition, "spec", "names", "plural")
}

func identityOf(obj map[string]any) (namespace, name string) {
	return nested.String(obj, "metadata", "namespace"), nameOf(obj)
}

func isDeleting(obj map[string]any) bool {
	return nested.String(obj, "metadata", "deletionTimestamp") != ""
}

func finalizersOf(obj map[string]any) []string { return nested.Strings(obj, "metadata", "finalizers") }

func setFinalizers(obj map[string]any, names []string) {
	list := make([]any, 0, len(names))
	for _, name := range names {
		list = append(list, name)
	}
	nested.Map(obj, "metadata")["finalizers"] = list
}
