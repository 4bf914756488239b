package builtin

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// Validate returns the validation errors of a built-in object, except for its metadata. old is nil for a creation. Not all rules
// of the API server are implemented: NotValidated returns the gaps.
func Validate(resource schema.GroupResource, subresource string, obj, old map[string]any) field.ErrorList {
	if subresource != "" {
		return nil
	}
	if validate := validators()[resource.String()]; validate != nil {
		return validate(obj, old)
	}
	return nil
}

// validators returns the validation of each resource. old is nil for a creation.
var validators = sync.OnceValue(func() map[string]func(obj, old object) field.ErrorList {
	return map[string]func(obj, old object) field.ErrorList{
		"clusterrolebindings.rbac.authorization.k8s.io":              validateClusterRoleBinding,
		"clusterroles.rbac.authorization.k8s.io":                     validateClusterRole,
		"configmaps":                                                 validateConfigMap,
		"cronjobs.batch":                                             validateCronJob,
		"customresourcedefinitions.apiextensions.k8s.io":             structural.ValidateDefinition,
		"daemonsets.apps":                                            validateDaemonSet,
		"deployments.apps":                                           validateDeployment,
		"horizontalpodautoscalers.autoscaling":                       validateAutoscaler,
		"ingresses.networking.k8s.io":                                validateIngress,
		"jobs.batch":                                                 validateJob,
		"leases.coordination.k8s.io":                                 validateLease,
		"mutatingwebhookconfigurations.admissionregistration.k8s.io": validateWebhooks,
		"namespaces":                                                 validateNamespace,
		"networkpolicies.networking.k8s.io":                          validateNetworkPolicy,
		"persistentvolumeclaims":                                     validateClaim,
		"persistentvolumes":                                          validateVolume,
		"poddisruptionbudgets.policy":                                validateBudget,
		"pods":                                                       validatePod,
		"priorityclasses.scheduling.k8s.io":                          validatePriorityClass,
		"replicasets.apps":                                           validateReplicaSet,
		"replicationcontrollers":                                     validateReplicationController,
		"rolebindings.rbac.authorization.k8s.io":                     validateRoleBinding,
		"roles.rbac.authorization.k8s.io":                            validateRole,
		"secrets":                                                    validateSecret,
		"services":                                                   validateService,
		"statefulsets.apps":                                          validateStatefulSet,
		"storageclasses.storage.k8s.io":                              validateStorageClass,
		"validatingadmissionpolicies.admissionregistration.k8s.io":       validateAdmissionPolicy,
		"validatingadmissionpolicybindings.admissionregistration.k8s.io": validateAdmissionBinding,
		"validatingwebhookconfigurations.admissionregistration.k8s.io":   validateWebhooks,
	}
})

// NotValidated returns the fields of an object that the API server validates but Validate does not, for warnings.
func NotValidated(resource schema.GroupResource, obj map[string]any) []string {
	spec := nested.Map(obj, "spec")
	at := "spec"
	switch name := resource.String(); name {
	case "namespaces", "serviceaccounts", "nodes", "events", "events.events.k8s.io", "endpoints", "controllerrevisions.apps",
		"customresourcedefinitions.apiextensions.k8s.io":
		return nil
	case "horizontalpodautoscalers.autoscaling":
		return notValidatedOfAutoscaler(spec)
	case "pods":
	case "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "replicationcontrollers":
		spec = nested.Map(spec, "template", "spec")
		at = "spec.template.spec"
	case "podtemplates":
		spec = nested.Map(obj, "template", "spec")
		at = "template.spec"
	case "cronjobs.batch":
		spec = nested.Map(spec, "jobTemplate", "spec", "template", "spec")
		at = "spec.jobTemplate.spec.template.spec"
	default:
		if validators()[name] == nil {
			return []string{"the rules of " + name + " beyond types and metadata"}
		}
		return nil
	}
	return notValidatedOfPod(at, spec)
}

// notValidatedOfAutoscaler returns the unvalidated fields of a HorizontalPodAutoscaler.
func notValidatedOfAutoscaler(spec object) (fields []string) {
	if spec["behavior"] != nil {
		fields = append(fields, "spec.behavior")
	}
	for i, metric := range nested.Maps(spec, "metrics") {
		if nested.Map(metric, "resource", "target")["type"] != "Utilization" {
			fields = append(fields, fmt.Sprintf("spec.metrics[%d]", i))
		}
	}
	return fields
}

// notValidatedOfPod returns the unvalidated fields of a pod spec.
func notValidatedOfPod(at string, spec object) (fields []string) {
	for _, name := range []string{"affinity", "dnsConfig", "ephemeralContainers", "hostAliases", "os", "overhead", "readinessGates",
		"resourceClaims", "resources", "schedulingGates", "topologySpreadConstraints"} {
		if spec[name] != nil {
			fields = append(fields, at+"."+name)
		}
	}
	for _, name := range []string{"initContainers", "containers"} {
		for i, container := range nested.Maps(spec, name) {
			if context := nested.Map(container, "securityContext"); nested.Bool(context, "privileged") || context["procMount"] != nil || context["windowsOptions"] != nil {
				fields = append(fields, fmt.Sprintf("%s.%s[%d].securityContext", at, name, i))
			}
		}
	}
	return fields
}
