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
func deploymentFields(obj *unstructured.Object, replicaSets []*unstructured.Object) []field {
	deployment := obj.Object
	fields := nameFields(obj)
	fields = append(fields, text("CreationTimestamp", timeText(textAt(deployment, "metadata", "creationTimestamp"))))
	fields = append(fields, labelFields(obj)...)
	fields = append(fields, ownerFields(obj)...)
	desired := int64(1)
	if nested.Value(deployment, "spec", "replicas") != nil {
		desired = nested.Int(deployment, "spec", "replicas")
	}
	status := nested.Map(deployment, "status")
	fields = append(fields,
		text("Selector", selectorText(nested.Map(deployment, "spec", "selector"))),
		text("Replicas", fmt.Sprintf("%d desired | %d updated | %d total | %d available | %d unavailable", desired,
			nested.Int(status, "updatedReplicas"), nested.Int(status, "replicas"), nested.Int(status, "availableReplicas"), nested.Int(status, "unavailableReplicas"))),
		text("StrategyType", textAt(deployment, "spec", "strategy", "type")),
		text("MinReadySeconds", strconv.FormatInt(nested.Int(deployment, "spec", "minReadySeconds"), 10)),
	)
	if rolling := nested.Map(deployment, "spec", "strategy", "rollingUpdate"); rolling != nil {
		fields = append(fields, text("RollingUpdateStrategy",
			textAt(rolling, "maxUnavailable")+" max unavailable, "+textAt(rolling, "maxSurge")+" max surge"))
	}
	fields = append(fields, templateField(nested.Map(deployment, "spec", "template")))
	if conditions := nested.List(deployment, "status", "conditions"); len(conditions) > 0 {
		var rows [][]string
		for _, c := range conditions {
			rows = append(rows, []string{textAt(c, "type"), textAt(c, "status"), textAt(c, "reason")})
		}
		fields = append(fields, table("Conditions", []string{"Type", "Status", "Reason"}, rows))
	}
	return append(fields, replicaSetFields(obj, replicaSets)...)
}

// templateField describes the pod template of a workload.
func templateField(template map[string]any) field {
	fields := []field{text("Labels", pairs(nested.Map(template, "metadata", "labels"), "=")...)}
	if annotations := nested.Map(template, "metadata", "annotations"); len(annotations) > 0 {
		fields = append(fields, text("Annotations", pairs(annotations, ": ")...))
	}
	fields = append(fields, optional("Service Account", textAt(template, "spec", "serviceAccountName"))...)
	if containers := nested.List(template, "spec", "initContainers"); len(containers) > 0 {
		fields = append(fields, containersField("Init Containers", containers, nil, false))
	}
	fields = append(fields, containersField("Containers", nested.List(template, "spec", "containers"), nil, false),
		volumesField(nested.List(template, "spec", "volumes")))
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
		text("Selector", selectorText(nested.Map(spec, "selector"))),
		text("Type", textAt(spec, "type")),
		text("IP Family Policy", or(textAt(spec, "ipFamilyPolicy"), none)),
		text("IP Families", joined(nested.List(spec, "ipFamilies"))),
		text("IP", textAt(spec, "clusterIP")),
		text("IPs", joined(nested.List(spec, "clusterIPs"))),
	)
	for _, extra := range []struct{ label, value string }{
		{"External IPs", strings.Join(texts(nested.List(spec, "externalIPs")), ",")},
		{"External Name", textAt(spec, "externalName")},
		{"Desired LoadBalancer IP", textAt(spec, "loadBalancerIP")},
		{"LoadBalancer Ingress", ingressText(nested.List(service, "status", "loadBalancer", "ingress"))},
	} {
		fields = append(fields, optional(extra.label, extra.value)...)
	}
	for _, port := range nested.List(spec, "ports") {
		protocol := or(textAt(port, "protocol"), "TCP")
		name := or(textAt(port, "name"), "<unset>")
		fields = append(fields, text("Port", name+"  "+textAt(port, "port")+"/"+protocol),
			text("TargetPort", or(textAt(port, "targetPort"), textAt(port, "port"))+"/"+protocol))
		if nodePort := nested.Int(port, "nodePort"); nodePort != 0 {
			fields = append(fields, text("NodePort", name+"  "+strconv.FormatInt(nodePort, 10)+"/"+protocol))
		}
		fields = append(fields, text("Endpoints", endpointsText(textAt(port, "name"), endpointSlices)))
	}
	fields = append(fields, text("Session Affinity", or(textAt(spec, "sessionAffinity"), none)))
	fields = append(fields, optional("External Traffic Policy", textAt(spec, "externalTrafficPolicy"))...)
	fields = append(fields, optional("Internal Traffic Policy", textAt(spec, "internalTrafficPolicy"))...)
	return append(fields, optional("LoadBalancer Source Ranges", strings.Join(texts(nested.List(spec, "loadBalancerSourceRanges")), ","))...)
}

// ingressText returns the addresses of a load balancer.
func ingressText(ingress []any) string {
	var all []string
	for _, i := range ingress {
		all = append(all, or(textAt(i, "ip"), textAt(i, "hostname")))
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
