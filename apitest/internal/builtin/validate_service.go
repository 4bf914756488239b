package builtin

import (
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
	isHeadless := nested.String(spec, "clusterIP") == "None"
	ports := nested.Maps(spec, "ports")
	if len(ports) == 0 && !isHeadless && typ != "ExternalName" {
		c.add(field.Required(at.Child("ports"), ""))
	}
	switch {
	case isHeadless && (typ == "LoadBalancer" || typ == "NodePort"):
		c.invalid(at.Child("clusterIPs").Index(0), "None", "may not be set to 'None' for "+typ+" services")
	case typ == "ExternalName":
		if name := strings.TrimSuffix(nested.String(spec, "externalName"), "."); name != "" {
			c.invalid(at.Child("externalName"), name, validation.IsDNS1123Subdomain(name)...)
		} else {
			c.add(field.Required(at.Child("externalName"), ""))
		}
	}
	c.servicePorts(at.Child("ports"), ports, typ)
	c.add(metavalidation.ValidateLabels(nested.StringMap(spec, "selector"), at.Child("selector"))...)
	isExternal := typ == "NodePort" || typ == "LoadBalancer" || typ == "ClusterIP" && len(nested.Slice(spec, "externalIPs")) > 0
	switch policy := nested.String(spec, "externalTrafficPolicy"); {
	case policy != "" && !isExternal:
		c.invalid(at.Child("externalTrafficPolicy"), policy, "may only be set for externally-accessible services")
	case policy != "" && policy != "Cluster" && policy != "Local":
		c.add(field.NotSupported(at.Child("externalTrafficPolicy"), policy, []string{"Cluster", "Local"}))
	}
	c.clusterIPUpdate(at, spec, nested.Map(old, "spec"))
	return c.errs
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
	nodePorts := map[string]bool{}
	for i, port := range ports {
		at := at.Index(i)
		if nested.String(port, "name") == "" && len(ports) > 1 {
			c.add(field.Required(at.Child("name"), ""))
		}
		node := nested.Int64(port, "nodePort")
		if node == 0 {
			continue
		}
		if typ == "ClusterIP" {
			c.add(field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		key := nodePortKey(port, node)
		if nodePorts[key] {
			c.add(field.Duplicate(at.Child("nodePort"), node))
		}
		nodePorts[key] = true
	}
}
