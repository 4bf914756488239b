package builtin

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// updateService removes the fields that the new type of a service does not have, if the update left them as they were: the server
// set them for the old type.
func updateService(service, old object) {
	spec, before := ensure(service, "spec"), child(old, "spec")
	typ := text(spec, "type")
	drop := func(condition func(spec object) bool, name string) {
		if condition(before) && !condition(spec) && equality.Semantic.DeepEqual(spec[name], before[name]) {
			delete(spec, name)
		}
	}
	if hasNodePorts(before) && !hasNodePorts(spec) && !addsNodePorts(spec, before) {
		for _, port := range objects(spec, "ports") {
			delete(port, "nodePort")
		}
	}
	isBalancer := func(spec object) bool { return text(spec, "type") == "LoadBalancer" }
	drop(func(spec object) bool { return isBalancer(spec) && text(spec, "externalTrafficPolicy") == "Local" }, "healthCheckNodePort")
	drop(isBalancer, "allocateLoadBalancerNodePorts")
	drop(isBalancer, "loadBalancerClass")
	drop(func(spec object) bool {
		return hasNodePorts(spec) || text(spec, "type") == "ClusterIP" && len(list(spec, "externalIPs")) > 0
	}, "externalTrafficPolicy")
	if typ != "LoadBalancer" {
		ensure(service, "status")["loadBalancer"] = object{}
	}
}

func hasNodePorts(spec object) bool {
	return text(spec, "type") == "NodePort" || text(spec, "type") == "LoadBalancer"
}

// addsNodePorts reports whether a port has a node port that none had before.
func addsNodePorts(spec, old object) bool {
	known := []any{nil}
	for _, port := range objects(old, "ports") {
		known = append(known, port["nodePort"])
	}
	return slices.ContainsFunc(objects(spec, "ports"), func(port object) bool { return !slices.Contains(known, port["nodePort"]) })
}

// ServiceWarnings returns the texts for fields of a service that its type ignores.
func ServiceWarnings(service map[string]any) []string {
	spec := child(service, "spec")
	isExternal := text(spec, "type") == "ExternalName"
	switch {
	case isExternal && len(list(spec, "externalIPs")) > 0:
		return []string{`spec.externalIPs is ignored when spec.type is "ExternalName"`}
	case !isExternal && text(spec, "externalName") != "":
		return []string{`spec.externalName is ignored when spec.type is not "ExternalName"`}
	}
	return nil
}
