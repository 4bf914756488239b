package describe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// roleLabel is the prefix of role labels. The suffix is the role of the node.
const roleLabel = "node-role.kubernetes.io/"

// nodeFields describes a node in kubectl's sections.
func nodeFields(obj *unstructured.Object, related *Related) []field {
	node := obj.Object
	var roles []string
	for label, value := range obj.GetLabels() {
		if role, ok := strings.CutPrefix(label, roleLabel); ok && role != "" {
			roles = append(roles, role)
		} else if label == "kubernetes.io/role" && value != "" {
			roles = append(roles, value)
		}
	}
	slices.Sort(roles)
	fields := []field{text("Name", obj.GetName()), text("Roles", or(strings.Join(roles, ","), none))}
	fields = append(fields, labelFields(obj)...)
	fields = append(fields, text("CreationTimestamp", timeText(popText(node, "metadata", "creationTimestamp"))))
	fields = append(fields, deletionFields(obj, related.Now)...)
	var taints []string
	for _, t := range nested.List(node, "spec", "taints") {
		taint := popText(t, "key")
		if value := popText(t, "value"); value != "" {
			taint += "=" + value
		}
		taints = append(taints, taint+":"+popText(t, "effect"))
	}
	fields = append(fields, text("Taints", taints...), text("Unschedulable", or(popText(node, "spec", "unschedulable"), "false")))
	if lease := related.Lease; lease != nil {
		fields = append(fields, field{label: "Lease", fields: []field{
			text("HolderIdentity", or(textAt(lease.Object, "spec", "holderIdentity"), "<unset>")),
			text("AcquireTime", or(timeText(textAt(lease.Object, "spec", "acquireTime")), "<unset>")),
			text("RenewTime", or(timeText(textAt(lease.Object, "spec", "renewTime")), "<unset>")),
		}})
	}
	if conditions := nested.List(node, "status", "conditions"); len(conditions) > 0 {
		fields = append(fields, nodeConditionsField(conditions))
	}
	pods := nodePodsFields(node, related.Pods, related.Now)
	fields = append(fields, nodeStatusFields(node)...)
	return append(fields, pods...)
}

func nodeConditionsField(conditions []any) field {
	var rows [][]string
	for _, c := range conditions {
		rows = append(rows, []string{
			popText(c, "type"), popText(c, "status"), timeText(popText(c, "lastHeartbeatTime")), timeText(popText(c, "lastTransitionTime")),
			popText(c, "reason"), oneLine(popText(c, "message")),
		})
	}
	return table("Conditions", []string{"Type", "Status", "LastHeartbeatTime", "LastTransitionTime", "Reason", "Message"}, rows)
}

// nodeStatusFields returns a node's addresses, resources and versions.
func nodeStatusFields(node map[string]any) []field {
	var addresses []field
	for _, address := range nested.List(node, "status", "addresses") {
		addresses = append(addresses, text(popText(address, "type"), popText(address, "address")))
	}
	fields := []field{group("Addresses", addresses)}
	for _, name := range []string{"capacity", "allocatable"} {
		values := nested.Map(node, "status", name)
		var below []field
		for _, resource := range slices.Sorted(maps.Keys(values)) {
			below = append(below, text(resource, popText(values, resource)))
		}
		fields = append(fields, group(title(name), below))
	}
	var info []field
	for _, entry := range []struct{ label, name string }{
		{"Machine ID", "machineID"}, {"System UUID", "systemUUID"}, {"Boot ID", "bootID"}, {"Kernel Version", "kernelVersion"},
		{"OS Image", "osImage"}, {"Operating System", "operatingSystem"}, {"Architecture", "architecture"},
		{"Container Runtime Version", "containerRuntimeVersion"}, {"Kubelet Version", "kubeletVersion"},
	} {
		info = append(info, text(entry.label, popText(node, "status", "nodeInfo", entry.name)))
	}
	fields = append(fields, group("System Info", info))
	fields = append(fields, optional("PodCIDR", popText(node, "spec", "podCIDR"))...)
	fields = append(fields, optional("PodCIDRs", strings.Join(popTexts(node, "spec", "podCIDRs"), ","))...)
	return append(fields, optional("ProviderID", popText(node, "spec", "providerID"))...)
}

// total is the sum of the requests and limits of a resource.
type total struct{ requests, limits resource.Quantity }

// nodePodsFields returns the unfinished pods on a node with their resources, and the sums of the resources.
func nodePodsFields(node map[string]any, pods []*unstructured.Object, now time.Time) []field {
	allocatable := nested.Map(node, "status", "allocatable")
	if len(allocatable) == 0 {
		allocatable = nested.Map(node, "status", "capacity")
	}
	totals := map[string]*total{"cpu": {}, "memory": {}, "ephemeral-storage": {}}
	var rows [][]string
	for _, pod := range pods {
		if phase := textAt(pod.Object, "status", "phase"); phase == "Succeeded" || phase == "Failed" {
			continue
		}
		used := podResources(pod.Object)
		row := []string{pod.GetNamespace(), pod.GetName()}
		for _, name := range []string{"cpu", "memory"} {
			t := used[name]
			if t == nil {
				t = &total{}
			}
			row = append(row, share(t.requests, allocatable[name]), share(t.limits, allocatable[name]))
		}
		rows = append(rows, append(row, age(textAt(pod.Object, "metadata", "creationTimestamp"), now)))
		for name, t := range used {
			if totals[name] == nil {
				totals[name] = &total{}
			}
			totals[name].requests.Add(t.requests)
			totals[name].limits.Add(t.limits)
		}
	}
	header := []string{"Namespace", "Name", "CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits", "Age"}
	var sums [][]string
	for _, name := range slices.Sorted(maps.Keys(totals)) {
		sums = append(sums, []string{name, share(totals[name].requests, allocatable[name]), share(totals[name].limits, allocatable[name])})
	}
	return []field{
		table(fmt.Sprintf("Non-terminated Pods (%d in total)", len(rows)), header, rows),
		table("Allocated resources (limits may be over 100 percent)", []string{"Resource", "Requests", "Limits"}, sums),
	}
}

// podTotals maps names of resources to the totals of a pod.
type podTotals map[string]*total

func (p podTotals) at(name string) *total {
	if p[name] == nil {
		p[name] = &total{}
	}
	return p[name]
}

// add adds the resources of a container.
func (p podTotals) add(container any) {
	for name, value := range nested.Map(container, "resources", "requests") {
		p.at(name).requests.Add(quantity(value))
	}
	for name, value := range nested.Map(container, "resources", "limits") {
		p.at(name).limits.Add(quantity(value))
	}
}

// podResources returns the requests and limits of a pod: max(sum over containers and sidecars, largest sum of an init container and the
// sidecars before it). spec.resources overrides both. spec.overhead is added to requests and to existing limits.
func podResources(pod map[string]any) podTotals {
	sum := podTotals{}
	for _, container := range nested.List(pod, "spec", "containers") {
		sum.add(container)
	}
	initMax := podTotals{}
	var sidecars []any
	for _, container := range nested.List(pod, "spec", "initContainers") {
		if textAt(container, "restartPolicy") == "Always" { // a sidecar
			sum.add(container)
			sidecars = append(sidecars, container)
			continue
		}
		needed := podTotals{}
		needed.add(container)
		for _, sidecar := range sidecars {
			needed.add(sidecar)
		}
		initMax.enlarge(needed)
	}
	sum.enlarge(initMax)
	for name, value := range nested.Map(pod, "spec", "resources", "requests") {
		if isOfPods(name) {
			sum.at(name).requests = quantity(value)
		}
	}
	for name, value := range nested.Map(pod, "spec", "resources", "limits") {
		if isOfPods(name) {
			sum.at(name).limits = quantity(value)
		}
	}
	for name, value := range nested.Map(pod, "spec", "overhead") {
		sum.at(name).requests.Add(quantity(value))
		if !sum.at(name).limits.IsZero() {
			sum.at(name).limits.Add(quantity(value))
		}
	}
	return sum
}

// isOfPods reports whether spec.resources of a pod may have a resource.
func isOfPods(name string) bool {
	return name == "cpu" || name == "memory" || strings.HasPrefix(name, "hugepages-")
}

// enlarge sets each total to the maximum of both.
func (p podTotals) enlarge(other podTotals) {
	for name, t := range other {
		p.at(name).requests = larger(p.at(name).requests, t.requests)
		p.at(name).limits = larger(p.at(name).limits, t.limits)
	}
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// quantity parses a quantity. An invalid quantity is 0.
func quantity(value any) resource.Quantity {
	parsed, err := resource.ParseQuantity(scalar(value))
	if err != nil {
		return resource.Quantity{}
	}
	return parsed
}

// share formats a quantity with its percentage of allocatable.
func share(used resource.Quantity, allocatable any) string {
	percent := int64(0)
	if of := quantity(allocatable); !of.IsZero() {
		percent = int64(used.AsApproximateFloat64() / of.AsApproximateFloat64() * 100)
	}
	return fmt.Sprintf("%s (%d%%)", used.String(), percent)
}
