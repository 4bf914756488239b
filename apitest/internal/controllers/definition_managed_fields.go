package controllers

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// ownStatus makes the API server the manager of the status, like its own controllers.
func ownStatus(definition map[string]any, now string) {
	metadata := nested.Map(definition, "metadata")
	entries := nested.Slice(metadata, "managedFields")
	entry := map[string]any{
		"manager": "kube-apiserver", "operation": "Update", "apiVersion": definitionGroup + "/v1", "time": now,
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:status": statusFields(nested.EnsureMap(definition, "status"))}, "subresource": "status",
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(item any) bool {
		old, _ := item.(map[string]any)
		return old["manager"] == "kube-apiserver" && old["subresource"] == "status"
	})
	entries = append(entries, entry)
	slices.SortStableFunc(entries, compareEntries)
	metadata["managedFields"] = entries
}

// compareEntries orders managedFields like the API server.
func compareEntries(a, b any) int {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	for _, field := range []string{"operation", "time", "manager", "subresource"} {
		if order := strings.Compare(nested.String(x, field), nested.String(y, field)); order != 0 {
			return order
		}
	}
	return 0
}

func statusFields(status map[string]any) map[string]any {
	fields := map[string]any{"f:acceptedNames": leaves(nested.Map(status, "acceptedNames"))}
	conditions := map[string]any{}
	list := nested.Slice(status, "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		key, err := json.Marshal(map[string]any{"type": c["type"]})
		if err != nil {
			continue
		}
		owned := leaves(c)
		owned["."] = map[string]any{}
		conditions["k:"+string(key)] = owned
	}
	if len(conditions) > 0 {
		fields["f:conditions"] = conditions
	}
	return fields
}

func leaves(obj map[string]any) map[string]any {
	fields := map[string]any{}
	for name := range obj {
		fields["f:"+name] = map[string]any{}
	}
	return fields
}
