package builtin

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// The default ranges of cluster IPs and node ports of kube-apiserver.
const (
	serviceRange = "10.96.0.0/16"
	minNodePort  = 30000
	maxNodePort  = 32767
)

// AllocateService sets the IP families, cluster IPs and node ports of a created or updated service, and returns allocation
// errors. old is nil for a creation. services are the stored services.
func AllocateService(service, old map[string]any, services iter.Seq[map[string]any]) field.ErrorList {
	spec := nested.EnsureMap(service, "spec")
	before := nested.Map(old, "spec")
	inUse := newServiceUse(service, services)
	families := nested.Slice(spec, "ipFamilies")
	keepClusterIP(spec, before)
	normalizeClusterIPs(spec, before)
	if errs := addressErrors(spec, before, families); len(errs) > 0 {
		return errs
	}
	if nested.String(spec, "type") == "ExternalName" {
		for _, name := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
			delete(spec, name)
		}
		return nil
	}
	isKept := before != nil && nested.String(before, "type") != "ExternalName" // a change is an error of validation
	if errs := allocateClusterIP(spec, inUse); len(errs) > 0 && !isKept {
		return errs
	}
	return allocateNodePorts(spec, before, inUse)
}

// normalizeClusterIPs sets clusterIPs to a new clusterIP.
func normalizeClusterIPs(spec, old object) {
	ip := nested.String(spec, "clusterIP")
	ips := nested.Slice(spec, "clusterIPs")
	switch {
	case ip != "" && len(ips) == 0, ip != "" && old != nil && old["clusterIP"] != ip && equality.Semantic.DeepEqual(ips, old["clusterIPs"]):
		spec["clusterIPs"] = []any{ip}
	case ip == "" && old != nil && equality.Semantic.DeepEqual(ips, old["clusterIPs"]):
		delete(spec, "clusterIPs")
	}
}

// addressErrors returns the errors of addresses that are not valid before the allocation. families are the IP families of the request.
func addressErrors(spec, old object, families []any) (errs field.ErrorList) {
	at := field.NewPath("spec")
	if nested.String(spec, "type") == "ExternalName" {
		for _, name := range []string{"clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
			if spec[name] != nil && (old == nil || !equality.Semantic.DeepEqual(spec[name], old[name])) {
				errs = append(errs, field.Forbidden(at.Child(name), "may not be set for ExternalName services"))
			}
		}
		return errs
	}
	if errs = clusterIPErrors(spec, families, at.Child("clusterIPs")); len(errs) > 0 {
		return errs
	}
	policy := spec["ipFamilyPolicy"]
	if kept := nested.Slice(old, "ipFamilies"); len(families) > 0 && len(families) < len(kept) && policy != "SingleStack" {
		return append(errs, field.Invalid(at.Child("ipFamilyPolicy"), policy, "must be 'SingleStack' to release the secondary IP family"))
	}
	if spec["clusterIP"] == "None" && len(nested.Map(spec, "selector")) == 0 {
		return nil
	}
	if policy == "RequireDualStack" {
		errs = append(errs, field.Invalid(at.Child("ipFamilyPolicy"), policy, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range families {
		if family == "IPv6" {
			errs = append(errs, field.Invalid(at.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
	return errs
}

// clusterIPErrors returns the errors of cluster IPs by themselves, and beside the requested families.
func clusterIPErrors(spec object, families []any, at *field.Path) (errs field.ErrorList) {
	for i, family := range families {
		switch inFamilies := field.NewPath("spec", "ipFamilies").Index(i); {
		case family != "IPv4" && family != "IPv6":
			errs = append(errs, field.NotSupported(inFamilies, fmt.Sprint(family), []string{"IPv4", "IPv6"}))
		case slices.Contains(families[:i], family):
			errs = append(errs, field.Duplicate(inFamilies, family))
		}
	}
	ips := nested.Slice(spec, "clusterIPs")
	if len(ips) > 0 && ips[0] != spec["clusterIP"] {
		errs = append(errs, field.Invalid(at, ips, "first value must match `clusterIP`"))
	}
	if len(ips) > 1 && slices.Contains(ips, any("None")) {
		errs = append(errs, field.Invalid(at, ips, "'None' must be the first and only value"))
	}
	for i, ip := range ips {
		text, _ := ip.(string)
		for _, message := range ipOrNone(text) {
			errs = append(errs, field.Invalid(at.Index(i), ip, message))
		}
		addr, err := netip.ParseAddr(text)
		if err == nil && i < len(families) && (families[i] == "IPv6" && addr.Is4() || families[i] == "IPv4" && addr.Is6()) {
			errs = append(errs, field.Invalid(at.Index(i), ip, fmt.Sprintf("expected the family of ipFamilies[%d]", i)))
		}
	}
	return errs
}

// keepClusterIP copies cluster IP fields that an update left out.
func keepClusterIP(spec, old object) {
	if old == nil || nested.String(old, "type") == "ExternalName" || nested.String(spec, "type") == "ExternalName" {
		return
	}
	for _, name := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
		if value := spec[name]; (value == nil || value == "" && name != "ipFamilyPolicy") && old[name] != nil {
			spec[name] = deepCopy(old[name])
		}
	}
}

func allocateClusterIP(spec object, inUse *serviceUse) field.ErrorList {
	ip := nested.String(spec, "clusterIP")
	if ips := nested.Slice(spec, "clusterIPs"); ip == "" && len(ips) > 0 {
		ip, _ = ips[0].(string)
	}
	if ip != "None" {
		setIfNil(spec, "ipFamilyPolicy", "SingleStack")
		if addr, err := netip.ParseAddr(ip); err == nil && addr.Is6() {
			setIfAbsent(spec, "ipFamilies", []any{"IPv6"})
		}
	} else if spec["selector"] == nil {
		setIfNil(spec, "ipFamilyPolicy", "RequireDualStack")
		setIfAbsent(spec, "ipFamilies", []any{"IPv4", "IPv6"})
	}
	setIfNil(spec, "ipFamilyPolicy", "SingleStack")
	setIfAbsent(spec, "ipFamilies", []any{"IPv4"})
	at := field.NewPath("spec", "clusterIPs")
	switch addr, err := netip.ParseAddr(ip); {
	case ip == "None":
	case ip == "":
		if ip = inUse.nextIP(); ip == "" {
			return field.ErrorList{field.InternalError(field.NewPath("spec", "clusterIP"), fmt.Errorf("range is full"))}
		}
	case err != nil:
		return nil // reported by validation
	case !netip.MustParsePrefix(serviceRange).Contains(addr):
		return field.ErrorList{field.Invalid(at, ip, "failed to allocate IP "+ip+": the provided IP ("+ip+
			") is not in the valid range. The range of valid IPs is "+serviceRange)}
	case inUse.ips[ip]:
		return field.ErrorList{field.Invalid(at, ip, "failed to allocate IP "+ip+": provided IP is already allocated")}
	}
	spec["clusterIP"] = ip
	spec["clusterIPs"] = []any{ip}
	return nil
}

func allocateNodePorts(spec, old object, inUse *serviceUse) field.ErrorList {
	typ := nested.String(spec, "type")
	if typ != "NodePort" && (typ != "LoadBalancer" || spec["allocateLoadBalancerNodePorts"] == false) {
		for _, port := range nested.Maps(spec, "ports") {
			if old != nil && typ == "ClusterIP" && keptNodePort(port, old) == nested.Int64(port, "nodePort") {
				delete(port, "nodePort")
			}
		}
		return nil
	}
	var errs field.ErrorList
	for i, port := range nested.Maps(spec, "ports") {
		wanted := nested.Int64(port, "nodePort")
		if wanted == 0 {
			wanted = keptNodePort(port, old)
		}
		switch key := nodePortKey(port, wanted); {
		case wanted == 0:
			wanted = inUse.nextPort(port)
		case wanted < minNodePort || wanted > maxNodePort:
			errs = append(errs, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), wanted,
				fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", minNodePort, maxNodePort)))
		case inUse.ports[key]:
			errs = append(errs, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), wanted, "provided port is already allocated"))
		}
		port["nodePort"] = wanted
		inUse.ports[nodePortKey(port, wanted)] = true
	}
	if typ == "LoadBalancer" && nested.String(spec, "externalTrafficPolicy") == "Local" && nested.Int64(spec, "healthCheckNodePort") == 0 {
		spec["healthCheckNodePort"] = inUse.nextPort(object{"protocol": "TCP"})
	}
	return errs
}

// keptNodePort returns the previous node port of a port updated without nodePort, or 0.
func keptNodePort(port, old object) int64 {
	for _, before := range nested.Maps(old, "ports") {
		if nested.Int64(before, "port") == nested.Int64(port, "port") && nested.String(before, "protocol") == nested.String(port, "protocol") {
			return nested.Int64(before, "nodePort")
		}
	}
	return 0
}

func nodePortKey(port object, number int64) string {
	return fmt.Sprint(nested.String(port, "protocol"), "/", number)
}

// serviceUse has the allocated addresses and ports.
type serviceUse struct {
	ips   map[string]bool
	ports map[string]bool
}

func newServiceUse(except object, services iter.Seq[object]) *serviceUse {
	use := &serviceUse{map[string]bool{}, map[string]bool{}}
	own := nested.Map(except, "metadata")
	for service := range services {
		metadata := nested.Map(service, "metadata")
		spec := nested.Map(service, "spec")
		if nested.String(metadata, "name") == nested.String(own, "name") && nested.String(metadata, "namespace") == nested.String(own, "namespace") {
			continue
		}
		for _, ip := range nested.Slice(spec, "clusterIPs") {
			if ip, ok := ip.(string); ok {
				use.ips[ip] = true
			}
		}
		for _, port := range nested.Maps(spec, "ports") {
			use.ports[nodePortKey(port, nested.Int64(port, "nodePort"))] = true
		}
		use.ports[fmt.Sprint("TCP/", nested.Int64(spec, "healthCheckNodePort"))] = true
	}
	return use
}

// nextIP returns the first free address. 10.96.0.1 is reserved for the service kubernetes.
func (u *serviceUse) nextIP() string {
	prefix := netip.MustParsePrefix(serviceRange)
	for addr := prefix.Addr().Next().Next(); prefix.Contains(addr); addr = addr.Next() {
		if !u.ips[addr.String()] {
			return addr.String()
		}
	}
	return ""
}

func (u *serviceUse) nextPort(port object) int64 {
	for number := int64(minNodePort); number <= maxNodePort; number++ {
		if key := nodePortKey(port, number); !u.ports[key] {
			u.ports[key] = true
			return number
		}
	}
	return 0
}

// updateService removes server-set fields of the old service type from an update to a new type, unless the update changes them.
func updateService(service, old object) {
	spec := nested.EnsureMap(service, "spec")
	before := nested.Map(old, "spec")
	typ := nested.String(spec, "type")
	drop := func(condition func(spec object) bool, name string) {
		if condition(before) && !condition(spec) && equality.Semantic.DeepEqual(spec[name], before[name]) {
			delete(spec, name)
		}
	}
	if hasNodePorts(before) && !hasNodePorts(spec) && !addsNodePorts(spec, before) {
		for _, port := range nested.Maps(spec, "ports") {
			delete(port, "nodePort")
		}
	}
	isBalancer := func(spec object) bool { return nested.String(spec, "type") == "LoadBalancer" }
	drop(func(spec object) bool {
		return isBalancer(spec) && nested.String(spec, "externalTrafficPolicy") == "Local"
	}, "healthCheckNodePort")
	drop(isBalancer, "allocateLoadBalancerNodePorts")
	drop(isBalancer, "loadBalancerClass")
	drop(func(spec object) bool {
		return hasNodePorts(spec) || nested.String(spec, "type") == "ClusterIP" && len(nested.Slice(spec, "externalIPs")) > 0
	}, "externalTrafficPolicy")
	if typ != "LoadBalancer" {
		nested.EnsureMap(service, "status")["loadBalancer"] = object{}
	}
}

func hasNodePorts(spec object) bool {
	return nested.String(spec, "type") == "NodePort" || nested.String(spec, "type") == "LoadBalancer"
}

// addsNodePorts reports whether an update has a node port missing in old.
func addsNodePorts(spec, old object) bool {
	known := []any{nil}
	for _, port := range nested.Maps(old, "ports") {
		known = append(known, port["nodePort"])
	}
	return slices.ContainsFunc(nested.Maps(spec, "ports"), func(port object) bool { return !slices.Contains(known, port["nodePort"]) })
}

// serviceWarnings returns warnings for deprecated fields of a service, and for fields ignored for its type.
func serviceWarnings(service map[string]any) []string {
	spec := nested.Map(service, "spec")
	isExternal := nested.String(spec, "type") == "ExternalName"
	hasIPs := len(nested.Slice(spec, "externalIPs")) > 0
	isHeadless := nested.String(spec, "type") == "ClusterIP" && nested.String(spec, "clusterIP") == "None"
	var warnings []string
	for _, rule := range []struct {
		applies bool
		text    string
	}{
		{isHeadless && nested.String(spec, "loadBalancerIP") != "", "spec.loadBalancerIP is ignored for headless services"},
		{isHeadless && hasIPs, "spec.externalIPs is ignored for headless services"},
		{isHeadless && nested.String(spec, "sessionAffinity") != "None", "spec.SessionAffinity is ignored for headless services"},
		{hasIPs && !isHeadless && !isExternal, "spec.externalIPs is deprecated and may no longer be implemented in some clusters"},
		{isExternal && hasIPs, `spec.externalIPs is ignored when spec.type is "ExternalName"`},
		{!isExternal && nested.String(spec, "externalName") != "", `spec.externalName is ignored when spec.type is not "ExternalName"`},
		{nested.String(spec, "trafficDistribution") == "PreferClose", `spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`},
	} {
		if rule.applies {
			warnings = append(warnings, rule.text)
		}
	}
	return warnings
}
