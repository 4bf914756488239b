package describe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// deploymentFields describes a deployment in kubectl's sections.
func deploymentFields(obj *unstructured.Object, related *Related) []field {
	deployment := obj.Object
	fields := nameFields(obj)
	fields = append(fields, text("CreationTimestamp", timeText(popText(deployment, "metadata", "creationTimestamp"))))
	fields = append(fields, labelFields(obj)...)
	fields = append(fields, ownerFields(obj)...)
	desired := int64(1)
	if nested.Value(deployment, "spec", "replicas") != nil {
		desired = popInt(deployment, "spec", "replicas")
	}
	status := nested.Map(deployment, "status")
	fields = append(fields,
		text("Selector", selectorText(nested.Map(pop(deployment, "spec", "selector")))),
		text("Replicas", fmt.Sprintf("%d desired | %d updated | %d total | %d available | %d unavailable", desired,
			popInt(status, "updatedReplicas"), popInt(status, "replicas"), popInt(status, "availableReplicas"), popInt(status, "unavailableReplicas"))),
		text("StrategyType", popText(deployment, "spec", "strategy", "type")),
		text("MinReadySeconds", strconv.FormatInt(popInt(deployment, "spec", "minReadySeconds"), 10)),
	)
	if rolling := nested.Map(deployment, "spec", "strategy", "rollingUpdate"); rolling != nil {
		fields = append(fields, text("RollingUpdateStrategy",
			popText(rolling, "maxUnavailable")+" max unavailable, "+popText(rolling, "maxSurge")+" max surge"))
	}
	fields = append(fields, templateField(nested.Map(deployment, "spec", "template")))
	if conditions := nested.List(deployment, "status", "conditions"); len(conditions) > 0 {
		fields = append(fields, conditionsField(obj, conditions, related.Now))
	}
	return append(fields, replicaSetFields(obj, related.ReplicaSets)...)
}

// templateField describes the pod template of a workload.
func templateField(template map[string]any) field {
	fields := []field{text("Labels", popPairs(template, "=", "metadata", "labels")...)}
	if annotations := nested.Map(template, "metadata", "annotations"); len(annotations) > 0 {
		fields = append(fields, text("Annotations", pairs(annotations, ": ")...))
	}
	fields = append(fields, optional("Service Account", popText(template, "spec", "serviceAccountName"))...)
	if containers := nested.List(template, "spec", "initContainers"); len(containers) > 0 {
		fields = append(fields, containersField("Init Containers", containers, nil, nil))
	}
	fields = append(fields, containersField("Containers", nested.List(template, "spec", "containers"), nil, nil),
		volumesField(template["spec"]))
	return field{label: "Pod Template", fields: append(fields, schedulingFields(nested.Map(template, "spec"))...)}
}

// revision is the annotation with the revision number of a deployment and of its replica sets.
const revision = "deployment.kubernetes.io/revision"

// replicaSetFields returns the replica set with the deployment's revision, and the old replica sets.
func replicaSetFields(deployment *unstructured.Object, replicaSets []*unstructured.Object) []field {
	current := deployment.GetAnnotations()[revision]
	newest := []string{}
	old := []string{}
	replicaSets = slices.SortedFunc(slices.Values(replicaSets), func(a, b *unstructured.Object) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
	for _, rs := range replicaSets {
		line := fmt.Sprintf("%s (%d/%d replicas created)", rs.GetName(), nested.Int(rs.Object, "status", "replicas"), nested.Int(rs.Object, "spec", "replicas"))
		if rs.GetAnnotations()[revision] == current {
			newest = append(newest, line)
		} else {
			old = append(old, line)
		}
	}
	return []field{
		text("OldReplicaSets", or(strings.Join(old, ", "), none)), text("NewReplicaSet", or(strings.Join(newest, ", "), none)),
	}
}

// maxEndpoints is the number of listed addresses per service port.
const maxEndpoints = 3

// serviceFields describes a service in kubectl's sections.
func serviceFields(obj *unstructured.Object, endpointSlices []*unstructured.Object) []field {
	service := obj.Object
	spec := nested.Map(service, "spec")
	fields := append(nameFields(obj), labelFields(obj)...)
	fields = append(fields, ownerFields(obj)...)
	fields = append(fields,
		text("Selector", selectorText(nested.Map(pop(spec, "selector")))),
		text("Type", popText(spec, "type")),
		text("IP Family Policy", or(popText(spec, "ipFamilyPolicy"), none)),
		text("IP Families", or(strings.Join(popTexts(spec, "ipFamilies"), ","), none)),
		text("IP", popText(spec, "clusterIP")),
		text("IPs", or(strings.Join(popTexts(spec, "clusterIPs"), ","), none)),
	)
	for _, extra := range []struct{ label, value string }{
		{"External IPs", strings.Join(popTexts(spec, "externalIPs"), ",")},
		{"External Name", popText(spec, "externalName")},
		{"Desired LoadBalancer IP", popText(spec, "loadBalancerIP")},
		{"LoadBalancer Ingress", ingressText(nested.List(service, "status", "loadBalancer", "ingress"))},
	} {
		fields = append(fields, optional(extra.label, extra.value)...)
	}
	for _, port := range nested.List(spec, "ports") {
		protocol := or(popText(port, "protocol"), "TCP")
		portName := popText(port, "name")
		name := or(portName, "<unset>")
		number := popText(port, "port")
		fields = append(fields, text("Port", name+"  "+number+"/"+protocol), text("TargetPort", or(popText(port, "targetPort"), number)+"/"+protocol))
		if nodePort := popInt(port, "nodePort"); nodePort != 0 {
			fields = append(fields, text("NodePort", name+"  "+strconv.FormatInt(nodePort, 10)+"/"+protocol))
		}
		fields = append(fields, text("Endpoints", endpointsText(portName, endpointSlices)))
	}
	fields = append(fields, text("Session Affinity", or(popText(spec, "sessionAffinity"), none)))
	fields = append(fields, optional("External Traffic Policy", popText(spec, "externalTrafficPolicy"))...)
	fields = append(fields, optional("Internal Traffic Policy", popText(spec, "internalTrafficPolicy"))...)
	return append(fields, optional("LoadBalancer Source Ranges", strings.Join(popTexts(spec, "loadBalancerSourceRanges"), ","))...)
}

// ingressText returns the addresses of a load balancer.
func ingressText(ingress []any) string {
	var all []string
	for _, i := range ingress {
		all = append(all, or(popText(i, "ip"), popText(i, "hostname")))
	}
	return strings.Join(all, ", ")
}

// endpointsText returns the addresses of the ready endpoints of a port.
func endpointsText(port string, endpointSlices []*unstructured.Object) string {
	var all []string
	for _, slice := range endpointSlices {
		for _, p := range nested.List(slice.Object, "ports") {
			if textAt(p, "name") != port {
				continue
			}
			for _, endpoint := range nested.List(slice.Object, "endpoints") {
				if ready, ok := nested.Value(endpoint, "conditions", "ready").(bool); ok && !ready {
					continue
				}
				for _, address := range texts(nested.List(endpoint, "addresses")) {
					if strings.Contains(address, ":") {
						address = "[" + address + "]"
					}
					all = append(all, address+":"+textAt(p, "port"))
				}
			}
		}
	}
	if len(all) > maxEndpoints {
		return strings.Join(all[:maxEndpoints], ",") + fmt.Sprintf(" + %d more...", len(all)-maxEndpoints)
	}
	return strings.Join(all, ",")
}
