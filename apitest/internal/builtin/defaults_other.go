package builtin

import (
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
)

const rbacGroup = "rbac.authorization.k8s.io"

func otherDefaults() map[string]func(object) {
	roleRef := func(binding object) { setIfAbsent(nested.EnsureMap(binding, "roleRef"), "apiGroup", rbacGroup) }
	return map[string]func(object){
		"api/rbac/v1.RoleBinding":        roleRef,
		"api/rbac/v1.ClusterRoleBinding": roleRef,
		"api/rbac/v1.Subject": func(subject object) {
			if kind := nested.String(subject, "kind"); kind == "User" || kind == "Group" {
				setIfAbsent(subject, "apiGroup", rbacGroup)
			}
		},
		"api/networking/v1.NetworkPolicyPort": func(port object) { setIfNil(port, "protocol", "TCP") },
		"api/networking/v1.NetworkPolicy": func(policy object) {
			spec := nested.EnsureMap(policy, "spec")
			if len(nested.Slice(spec, "policyTypes")) > 0 {
				return
			}
			spec["policyTypes"] = []any{"Ingress"}
			if len(nested.Slice(spec, "egress")) > 0 {
				spec["policyTypes"] = []any{"Ingress", "Egress"}
			}
		},
		"api/networking/v1.IngressClass": func(class object) {
			if parameters := nested.Map(class, "spec", "parameters"); parameters != nil {
				setIfNil(parameters, "scope", "Cluster")
			}
		},
		"api/discovery/v1.EndpointPort": func(port object) {
			setIfAbsent(port, "name", "")
			setIfNil(port, "protocol", "TCP")
		},
		"api/scheduling/v1.PriorityClass": func(class object) { setIfNil(class, "preemptionPolicy", "PreemptLowerPriority") },
		"api/storage/v1.StorageClass": func(class object) {
			setIfNil(class, "reclaimPolicy", "Delete")
			setIfNil(class, "volumeBindingMode", "Immediate")
		},
		"api/storage/v1.CSIDriver":                   defaultCSIDriver,
		"api/autoscaling/v2.HorizontalPodAutoscaler": defaultAutoscaler,
		"api/autoscaling/v1.HorizontalPodAutoscaler": func(autoscaler object) {
			setIfAbsent(nested.EnsureMap(autoscaler, "spec"), "minReplicas", int64(1))
		},
		"api/resource/v1.ExactDeviceRequest":  defaultDeviceRequest,
		"api/resource/v1.DeviceSubRequest":    defaultDeviceRequest,
		"apiregistration/v1.ServiceReference": func(service object) { setIfAbsent(service, "port", int64(443)) },
	}
}

func defaultDeviceRequest(request object) {
	setIfAbsent(request, "allocationMode", "ExactCount")
	if request["allocationMode"] == "ExactCount" {
		setIfZero(request, "count", int64(1))
	}
}

func defaultCSIDriver(driver object) {
	spec := nested.EnsureMap(driver, "spec")
	setIfAbsent(spec, "attachRequired", true)
	for _, name := range []string{"podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"} {
		setIfAbsent(spec, name, false)
	}
	setIfNil(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
	if len(nested.Slice(spec, "volumeLifecycleModes")) == 0 {
		spec["volumeLifecycleModes"] = []any{"Persistent"}
	}
}

func defaultAutoscaler(autoscaler object) {
	spec := nested.EnsureMap(autoscaler, "spec")
	setIfAbsent(spec, "minReplicas", int64(1))
	if len(nested.Slice(spec, "metrics")) == 0 {
		spec["metrics"] = []any{object{"type": "Resource", "resource": object{
			"name": "cpu", "target": object{"type": "Utilization", "averageUtilization": int64(80)},
		}}}
	}
	behavior := nested.Map(spec, "behavior")
	if behavior == nil {
		return
	}
	percent := object{"type": "Percent", "value": int64(100), "periodSeconds": int64(15)}
	up := nested.EnsureMap(behavior, "scaleUp")
	setIfAbsent(up, "stabilizationWindowSeconds", int64(0))
	setIfNil(up, "selectPolicy", "Max")
	setIfAbsent(up, "policies", []any{object{"type": "Pods", "value": int64(4), "periodSeconds": int64(15)}, percent})
	down := nested.EnsureMap(behavior, "scaleDown")
	setIfNil(down, "selectPolicy", "Max")
	setIfAbsent(down, "policies", []any{deepCopy(percent)})
}

func admissionDefaults() map[string]func(object) {
	selectors := func(webhook object) {
		setIfNil(webhook, "matchPolicy", "Equivalent")
		setIfAbsent(webhook, "namespaceSelector", object{})
		setIfAbsent(webhook, "objectSelector", object{})
	}
	webhook := func(webhook object) {
		selectors(webhook)
		setIfNil(webhook, "failurePolicy", "Fail")
		setIfAbsent(webhook, "timeoutSeconds", int64(10))
	}
	policy := func(spec object) { setIfNil(spec, "failurePolicy", "Fail") }
	scope := func(rule object) { setIfNil(rule, "scope", "*") }
	const v1 = "api/admissionregistration/v1."
	return map[string]func(object){
		v1 + "ValidatingWebhook": webhook,
		v1 + "MutatingWebhook": func(mutating object) {
			webhook(mutating)
			setIfNil(mutating, "reinvocationPolicy", "Never")
		},
		v1 + "RuleWithOperations":            scope,
		v1 + "NamedRuleWithOperations":       scope,
		v1 + "ServiceReference":              func(service object) { setIfAbsent(service, "port", int64(443)) },
		v1 + "ValidatingAdmissionPolicySpec": policy,
		v1 + "MutatingAdmissionPolicySpec":   policy,
		v1 + "MatchResources":                selectors,
	}
}

func definitionDefaults() map[string]func(object) {
	return map[string]func(object){
		"apiextensions/v1.CustomResourceDefinition": func(definition object) {
			spec := nested.EnsureMap(definition, "spec")
			names := nested.EnsureMap(spec, "names")
			kind := nested.String(names, "kind")
			setIfAbsent(names, "singular", strings.ToLower(kind))
			if kind != "" {
				setIfAbsent(names, "listKind", kind+"List")
			}
			setIfAbsent(spec, "conversion", object{"strategy": "None"})
		},
		"apiextensions/v1.ServiceReference": func(service object) { setIfAbsent(service, "port", int64(443)) },
	}
}
