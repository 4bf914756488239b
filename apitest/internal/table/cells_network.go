package table

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func networkCells(resource string) func(object) []any {
	switch resource {
	case "services":
		return printService
	case "endpoints":
		return printEndpoints
	case "endpointslices.discovery.k8s.io":
		return printEndpointSlice
	case "ingresses.networking.k8s.io":
		return printIngress
	case "ingressclasses.networking.k8s.io":
		return printIngressClass
	case "networkpolicies.networking.k8s.io":
		return func(o object) []any { return []any{o.name(), o.selector("spec", "podSelector"), o.age()} }
	case "servicecidrs.networking.k8s.io":
		return func(o object) []any { return []any{o.name(), strings.Join(o.texts("spec", "cidrs"), ","), o.age()} }
	case "ipaddresses.networking.k8s.io":
		return printIPAddress
	}
	return nil
}

func printService(o object) []any {
	clusterIP := "<none>"
	if ips := o.texts("spec", "clusterIPs"); len(ips) > 0 {
		clusterIP = ips[0]
	}
	var ports []string
	for _, port := range o.list("spec", "ports") {
		text := strconv.FormatInt(port.number("port"), 10)
		if nodePort := port.number("nodePort"); nodePort > 0 {
			text += ":" + strconv.FormatInt(nodePort, 10)
		}
		ports = append(ports, text+"/"+port.text("protocol"))
	}
	if len(ports) == 0 {
		ports = []string{"<none>"}
	}
	return []any{
		o.name(), o.text("spec", "type"), clusterIP, externalIP(o), strings.Join(ports, ","), o.age(), o.labels("spec", "selector"),
	}
}

func externalIP(o object) string {
	external := o.texts("spec", "externalIPs")
	switch o.text("spec", "type") {
	case "ClusterIP", "NodePort":
		if len(external) > 0 {
			return strings.Join(external, ",")
		}
		return "<none>"
	case "LoadBalancer":
		all := append(loadBalancerAddresses(o), external...)
		if len(all) == 0 {
			return "<pending>"
		}
		return strings.Join(all, ",")
	case "ExternalName":
		return o.text("spec", "externalName")
	}
	return "<unknown>"
}

// loadBalancerAddresses returns the sorted addresses or host names of a load balancer.
func loadBalancerAddresses(o object) []string {
	var addresses []string
	for _, ingress := range o.list("status", "loadBalancer", "ingress") {
		if address := ingress.textUnlessEmpty(ingress.text("hostname"), "ip"); address != "" {
			addresses = append(addresses, address)
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

func printEndpoints(o object) []any {
	subsets := o.list("subsets")
	if len(subsets) == 0 {
		return []any{o.name(), "<none>", o.age()}
	}
	var all []string
	for _, subset := range subsets {
		addresses := subset.list("addresses")
		ports := subset.list("ports")
		if len(ports) == 0 { // of a headless service
			for _, address := range addresses {
				all = append(all, address.text("ip"))
			}
		}
		for _, port := range ports {
			for _, address := range addresses {
				all = append(all, net.JoinHostPort(address.text("ip"), strconv.FormatInt(port.number("port"), 10)))
			}
		}
	}
	return []any{o.name(), firstWithMore(all), o.age()}
}

func printEndpointSlice(o object) []any {
	var ports, addresses []string
	for _, port := range o.list("ports") {
		switch {
		case port.has("port"):
			ports = append(ports, strconv.FormatInt(port.number("port"), 10))
		case port.has("name"):
			ports = append(ports, port.text("name"))
		default:
			ports = append(ports, "*")
		}
	}
	for _, endpoint := range o.list("endpoints") {
		addresses = append(addresses, endpoint.texts("addresses")...)
	}
	unsetIfEmpty := func(all []string) string {
		if text := firstWithMore(all); text != "" {
			return text
		}
		return "<unset>"
	}
	return []any{o.name(), o.text("addressType"), unsetIfEmpty(ports), unsetIfEmpty(addresses), o.age()}
}

func printIngress(o object) []any {
	ports := "80"
	if o.count("spec", "tls") > 0 {
		ports = "80, 443"
	}
	return []any{
		o.name(), o.textOr("<none>", "spec", "ingressClassName"), ingressHosts(o.list("spec", "rules")),
		strings.Join(loadBalancerAddresses(o), ","), ports, o.age(),
	}
}

// ingressHosts returns the first three hosts. A rule without a host counts but is not shown.
func ingressHosts(rules []object) string {
	var hosts []string
	for _, rule := range rules {
		if len(hosts) == maxShown {
			return fmt.Sprintf("%s + %d more...", strings.Join(hosts, ","), len(rules)-maxShown)
		}
		if host := rule.text("host"); host != "" {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return "*"
	}
	return strings.Join(hosts, ",")
}

func printIngressClass(o object) []any {
	parameters := "<none>"
	if found := o.at("spec", "parameters"); found.content != nil {
		parameters = found.text("kind")
		if found.has("apiGroup") {
			parameters += "." + found.text("apiGroup")
		}
		parameters += "/" + found.text("name")
	}
	return []any{withDefault(o, "ingressclass.kubernetes.io/is-default-class"), o.text("spec", "controller"), parameters, o.age()}
}

// withDefault returns the name, marked if an annotation makes the object the default of its kind.
func withDefault(o object, annotations ...string) string {
	for _, annotation := range annotations {
		if o.text("metadata", "annotations", annotation) == "true" {
			return o.name() + " (default)"
		}
	}
	return o.name()
}

func printIPAddress(o object) []any {
	parent := "<none>"
	if ref := o.at("spec", "parentRef"); ref.content != nil {
		parent = strings.ToLower(schema.GroupResource{Group: ref.text("group"), Resource: ref.text("resource")}.String())
		if namespace := ref.text("namespace"); namespace != "" {
			parent += "/" + namespace
		}
		parent += "/" + ref.text("name")
	}
	return []any{o.name(), parent, o.age()}
}
