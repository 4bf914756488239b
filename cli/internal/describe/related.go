package describe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// relatedFields returns facts about an object that its related objects have.
func relatedFields(obj *unstructured.Object, related *Related) []field {
	switch obj.GroupVersionKind().GroupKind().String() {
	case "ReplicaSet.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicationController":
		return []field{podStatuses(related.Pods)}
	case "PersistentVolumeClaim":
		var names []string
		for _, pod := range related.Pods {
			names = append(names, pod.GetName())
		}
		return []field{text("Used By", names...)}
	case "Ingress.networking.k8s.io":
		return ingressFields(obj, related)
	case "Namespace":
		return []field{quotasField(related.Quotas), limitRangesField(related.LimitRanges)}
	}
	return nil
}

// podStatuses counts pods by their phase.
func podStatuses(pods []*unstructured.Object) field {
	counts := map[string]int{}
	for _, pod := range pods {
		counts[textAt(pod.Object, "status", "phase")]++
	}
	return text("Pods Status", fmt.Sprintf("%d Running / %d Waiting / %d Succeeded / %d Failed",
		counts["Running"], counts["Pending"], counts["Succeeded"], counts["Failed"]))
}

// quotasField describes the quotas of a namespace.
func quotasField(quotas []*unstructured.Object) field {
	var fields []field
	for _, quota := range quotas {
		var rows [][]string
		hard := nested.Map(quota.Object, "status", "hard")
		for _, name := range slices.Sorted(maps.Keys(hard)) {
			rows = append(rows, []string{name, or(textAt(quota.Object, "status", "used", name), "0"), scalar(hard[name])})
		}
		fields = append(fields, table(quota.GetName(), []string{"Resource", "Used", "Hard"}, rows))
		fields = append(fields, optional(quota.GetName()+" scopes", strings.Join(texts(nested.List(quota.Object, "spec", "scopes")), ", "))...)
	}
	return group("Resource Quotas", fields)
}

// limitRangesField describes the limit ranges of a namespace, with a row for each type and resource.
func limitRangesField(ranges []*unstructured.Object) field {
	bounds := []string{"min", "max", "defaultRequest", "default", "maxLimitRequestRatio"}
	var rows [][]string
	for _, limits := range ranges {
		for _, item := range nested.List(limits.Object, "spec", "limits") {
			names := map[string]bool{}
			for _, bound := range bounds {
				for name := range nested.Map(item, bound) {
					names[name] = true
				}
			}
			for _, name := range slices.Sorted(maps.Keys(names)) {
				row := []string{limits.GetName(), textAt(item, "type"), name}
				for _, bound := range bounds {
					row = append(row, or(textAt(item, bound, name), "-"))
				}
				rows = append(rows, row)
			}
		}
	}
	return table("Limit Ranges", []string{"Name", "Type", "Resource", "Min", "Max", "Default Request", "Default Limit", "Max Limit/Request Ratio"}, rows)
}

// ingressFields describes the rules of an ingress, with the endpoints of their services.
func ingressFields(obj *unstructured.Object, related *Related) []field {
	var rows [][]string
	add := func(host, path string, backend any) {
		rows = append(rows, []string{or(host, "*"), path, backendText(backend, related)})
	}
	if backend := nested.Map(obj.Object, "spec", "defaultBackend"); backend != nil {
		add("", "<default>", backend)
	}
	for _, rule := range nested.List(obj.Object, "spec", "rules") {
		for _, path := range nested.List(rule, "http", "paths") {
			add(textAt(rule, "host"), textAt(path, "path"), nested.Value(path, "backend"))
		}
	}
	return []field{table("Rules", []string{"Host", "Path", "Backend"}, rows)}
}

// backendText formats the backend of an ingress: SERVICE:PORT (ENDPOINTS), or a resource.
func backendText(backend any, related *Related) string {
	name := textAt(backend, "service", "name")
	if name == "" {
		return textAt(backend, "resource", "kind") + "/" + textAt(backend, "resource", "name")
	}
	wanted := or(textAt(backend, "service", "port", "name"), textAt(backend, "service", "port", "number"))
	isNamed := func(s *unstructured.Object) bool { return s.GetName() == name }
	i := slices.IndexFunc(related.Services, isNamed)
	if i < 0 {
		return name + ":" + wanted + " (<service not found>)"
	}
	endpoints := ""
	for _, port := range nested.List(related.Services[i].Object, "spec", "ports") {
		if textAt(port, "name") == wanted || textAt(port, "port") == wanted {
			endpoints = endpointsText(textAt(port, "name"), slices.DeleteFunc(slices.Clone(related.EndpointSlices), func(s *unstructured.Object) bool {
				return s.GetLabels()["kubernetes.io/service-name"] != name
			}))
		}
	}
	return name + ":" + wanted + " (" + endpoints + ")"
}
