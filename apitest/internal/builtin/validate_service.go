package builtin

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func validateService(service, old object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(service, "spec")
	typ := nested.String(spec, "type")
	headless := nested.String(spec, "clusterIP") == "None"
	ports := nested.Maps(spec, "ports")
	if len(ports) == 0 && !headless && typ != "ExternalName" {
		c.add(field.Required(at.Child("ports"), ""))
	}
	switch {
	case headless && (typ == "LoadBalancer" || typ == "NodePort"):
		c.invalid(at.Child("clusterIPs").Index(0), "None", "may not be set to 'None' for "+typ+" services")
	case typ == "ExternalName":
		if name := strings.TrimSuffix(nested.String(spec, "externalName"), "."); name != "" {
			c.subdomain(at.Child("externalName"), name)
		} else {
			c.add(field.Required(at.Child("externalName"), ""))
		}
	}
	c.servicePorts(at.Child("ports"), ports, typ)
	c.add(metavalidation.ValidateLabels(nested.StringMap(spec, "selector"), at.Child("selector"))...)
	c.oneOf(at, spec, "sessionAffinity", "ClientIP", "None")
	c.oneOf(at, spec, "type", "ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
	for i, ip := range nested.Slice(spec, "clusterIPs") {
		ip, _ := ip.(string)
		if _, err := netip.ParseAddr(ip); err != nil && ip != "None" {
			c.invalid(at.Child("clusterIPs").Index(i), ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
		}
	}
	for i, ip := range nested.Slice(spec, "externalIPs") {
		ip, _ := ip.(string)
		if _, err := netip.ParseAddr(ip); err != nil {
			c.invalid(at.Child("externalIPs").Index(i), ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
		}
	}
	if spec["allocateLoadBalancerNodePorts"] != nil && typ != "LoadBalancer" {
		c.add(field.Forbidden(at.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'"))
	}
	if spec["loadBalancerClass"] != nil && typ != "LoadBalancer" {
		c.add(field.Forbidden(at.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"))
	}
	c.trafficPolicies(at, spec)
	c.clusterIPUpdate(at, spec, nested.Map(old, "spec"))
	return c.errs
}

func (c *checker) trafficPolicies(at *field.Path, spec object) {
	typ := nested.String(spec, "type")
	external := typ == "NodePort" || typ == "LoadBalancer" || typ == "ClusterIP" && len(nested.Slice(spec, "externalIPs")) > 0
	if policy := nested.String(spec, "externalTrafficPolicy"); policy != "" {
		if !external {
			c.invalid(at.Child("externalTrafficPolicy"), policy, "may only be set for externally-accessible services")
		} else {
			c.oneOf(at, spec, "externalTrafficPolicy", "Cluster", "Local")
		}
	}
	if policy := nested.String(spec, "internalTrafficPolicy"); policy != "" {
		c.oneOf(at, spec, "internalTrafficPolicy", "Cluster", "Local")
	}
}

// clusterIPUpdate adds an error if the first cluster IP changes.
func (c *checker) clusterIPUpdate(at *field.Path, spec, old object) {
	if old == nil || nested.String(old, "type") == "ExternalName" || nested.String(spec, "type") == "ExternalName" {
		return
	}
	before := nested.Slice(old, "clusterIPs")
	after := nested.Slice(spec, "clusterIPs")
	if len(before) > 0 && len(after) > 0 && before[0] != after[0] {
		c.invalid(at.Child("clusterIPs").Index(0), after, "may not change once set")
	}
}

func (c *checker) servicePorts(at *field.Path, ports []object, typ string) {
	names := map[string]bool{}
	nodePorts := map[string]bool{}
	numbers := map[string]bool{}
	for i, port := range ports {
		at := at.Index(i)
		if name := nested.String(port, "name"); name != "" {
			c.label(at.Child("name"), name)
			if names[name] {
				c.add(field.Duplicate(at.Child("name"), name))
			}
			names[name] = true
		} else if len(ports) > 1 {
			c.add(field.Required(at.Child("name"), ""))
		}
		c.invalid(at.Child("port"), nested.Int64(port, "port"), validation.IsValidPortNum(int(nested.Int64(port, "port")))...)
		c.oneOf(at, port, "protocol", "SCTP", "TCP", "UDP")
		c.portOrName(at.Child("targetPort"), port["targetPort"])
		if node := nested.Int64(port, "nodePort"); node != 0 {
			if typ == "ClusterIP" {
				c.add(field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
			}
			if key := nodePortKey(port, node); nodePorts[key] {
				c.add(field.Duplicate(at.Child("nodePort"), node))
			} else {
				nodePorts[key] = true
			}
		}
		key := fmt.Sprint(nested.String(port, "protocol"), "/", nested.Int64(port, "port"))
		if numbers[key] {
			c.add(field.Duplicate(at, duplicatePort{Protocol: nested.String(port, "protocol"), Port: nested.Int64(port, "port")}))
		}
		numbers[key] = true
	}
}

// duplicatePort is a port as shown in the server's errors.
type duplicatePort struct {
	Name        string
	Protocol    string
	AppProtocol *string
	Port        int64
	TargetPort  int64
	NodePort    int64
}

func validateIngress(ingress, _ object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(ingress, "spec")
	rules := nested.Maps(spec, "rules")
	backend := nested.Map(spec, "defaultBackend")
	if len(rules) == 0 && backend == nil {
		c.invalid(at, spec["rules"], "either `defaultBackend` or `rules` must be specified")
	}
	if backend != nil {
		c.ingressBackend(at.Child("defaultBackend"), backend)
	}
	for i, rule := range rules {
		at := at.Child("rules").Index(i)
		if host := nested.String(rule, "host"); host != "" {
			c.ingressHost(at.Child("host"), host)
		}
		http := nested.Map(rule, "http")
		if http == nil {
			continue
		}
		c.require(at.Child("http"), http, "paths")
		for j, path := range nested.Maps(http, "paths") {
			c.ingressPath(at.Child("http", "paths").Index(j), path)
		}
	}
	for i, tls := range nested.Maps(spec, "tls") {
		for j, host := range nested.Slice(tls, "hosts") {
			host, _ := host.(string)
			c.hostName(at.Child("tls").Index(i).Child("hosts").Index(j), host)
		}
		if secret := nested.String(tls, "secretName"); secret != "" {
			c.subdomain(at.Child("tls").Index(i).Child("secretName"), secret)
		}
	}
	return c.errs
}

func (c *checker) ingressHost(at *field.Path, host string) {
	if _, err := netip.ParseAddr(host); err == nil {
		c.invalid(at, host, "must be a DNS name, not an IP address")
	}
	c.hostName(at, host)
}

func (c *checker) hostName(at *field.Path, host string) {
	if strings.Contains(host, "*") {
		c.invalid(at, host, validation.IsWildcardDNS1123Subdomain(host)...)
	} else {
		c.subdomain(at, host)
	}
}

func (c *checker) ingressPath(at *field.Path, rule object) {
	path := nested.String(rule, "path")
	switch typ := nested.String(rule, "pathType"); typ {
	case "":
		c.add(field.Required(at.Child("pathType"), "pathType must be specified"))
		return
	case "Exact", "Prefix":
		if !strings.HasPrefix(path, "/") {
			c.invalid(at.Child("path"), path, "must be an absolute path")
		}
		for _, sequence := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(path, sequence) {
				c.invalid(at.Child("path"), path, "must not contain '"+sequence+"'")
			}
		}
		for _, suffix := range []string{"/..", "/."} {
			if strings.HasSuffix(path, suffix) {
				c.invalid(at.Child("path"), path, "cannot end with '"+suffix+"'")
			}
		}
	case "ImplementationSpecific":
		if path != "" && !strings.HasPrefix(path, "/") {
			c.invalid(at.Child("path"), path, "must be an absolute path")
		}
	default:
		c.add(field.NotSupported(at.Child("pathType"), typ, []string{"Exact", "ImplementationSpecific", "Prefix"}))
	}
	c.ingressBackend(at.Child("backend"), nested.Map(rule, "backend"))
}

func (c *checker) ingressBackend(at *field.Path, backend object) {
	service := nested.Map(backend, "service")
	resource := nested.Map(backend, "resource")
	switch {
	case service != nil && resource != nil:
		c.invalid(at, "", "cannot set both resource and service backends")
	case resource != nil:
		c.require(at.Child("resource"), resource, "kind")
		c.require(at.Child("resource"), resource, "name")
	case service == nil:
		c.invalid(at, "", "resource or service backend is required")
	default:
		if c.require(at.Child("service"), service, "name") {
			c.invalid(at.Child("service", "name"), nested.String(service, "name"), validation.IsDNS1123Label(nested.String(service, "name"))...)
		}
		port := nested.Map(service, "port")
		name := nested.String(port, "name")
		n := nested.Int64(port, "number")
		switch {
		case name != "" && n != 0:
			c.invalid(at, "", "cannot set both port name & port number")
		case name != "":
			c.invalid(at.Child("service", "port", "name"), name, validation.IsValidPortName(name)...)
		case n != 0:
			c.invalid(at.Child("service", "port", "number"), n, validation.IsValidPortNum(int(n))...)
		default:
			c.add(field.Required(at, "port name or number is required"))
		}
	}
}

func validateNetworkPolicy(policy, _ object) field.ErrorList {
	c := &checker{}
	at := field.NewPath("spec")
	spec := nested.Map(policy, "spec")
	c.selector(at.Child("podSelector"), nested.Map(spec, "podSelector"))
	for direction, peers := range map[string]string{"ingress": "from", "egress": "to"} {
		for i, rule := range nested.Maps(spec, direction) {
			at := at.Child(direction).Index(i)
			for j, port := range nested.Maps(rule, "ports") {
				c.oneOf(at.Child("ports").Index(j), port, "protocol", "TCP", "UDP", "SCTP")
				if end, isSet := port["endPort"].(int64); isSet && end < max(1, nested.Int64(port, "port")) || isSet && nested.Int64(port, "port") == 0 {
					c.invalid(at.Child("ports").Index(j).Child("endPort"), end, "must not be less than `port`, which must be a number")
				}
			}
			for j, peer := range nested.Maps(rule, peers) {
				c.networkPeer(at.Child(peers).Index(j), peer)
			}
		}
	}
	for i, typ := range nested.Slice(spec, "policyTypes") {
		if typ, _ := typ.(string); !slices.Contains([]string{"Ingress", "Egress"}, typ) {
			c.add(field.NotSupported(at.Child("policyTypes").Index(i), typ, []string{"Ingress", "Egress"}))
		}
	}
	return c.errs
}

func (c *checker) networkPeer(at *field.Path, peer object) {
	if len(peer) == 0 {
		c.add(field.Required(at, "must specify a peer"))
	}
	for _, name := range []string{"podSelector", "namespaceSelector"} {
		if selector := nested.Map(peer, name); selector != nil {
			c.selector(at.Child(name), selector)
		}
	}
	block := nested.Map(peer, "ipBlock")
	if block == nil {
		return
	}
	if len(peer) > 1 {
		c.add(field.Forbidden(at, "may not specify both ipBlock and another peer"))
	}
	if c.require(at.Child("ipBlock"), block, "cidr") {
		if _, err := netip.ParsePrefix(nested.String(block, "cidr")); err != nil {
			c.invalid(at.Child("ipBlock", "cidr"), nested.String(block, "cidr"), "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
		}
	}
}
