package builtin

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/structural"
)

// Validate returns the validation errors of a built-in object, except for its metadata, and the fields that the write sets or
// changes although their rules are incomplete, as paths such as "spec.podFailurePolicy". old is nil for a creation.
func Validate(resource schema.GroupResource, subresource string, obj, old map[string]any) (errs field.ErrorList, notValidated []string) {
	if validate := validators()[resource.String()]; validate != nil && subresource == "" {
		errs = validate(obj, old)
	}
	byRules, notValidated := check(resource, subresource, obj, old)
	for _, err := range byRules {
		if !slices.ContainsFunc(errs, func(known *field.Error) bool { return known.Type == err.Type && known.Field == err.Field }) {
			errs = append(errs, err)
		}
	}
	return errs, notValidated
}

// validators returns the validation of each resource. old is nil for a creation.
var validators = sync.OnceValue(func() map[string]func(obj, old object) field.ErrorList {
	return map[string]func(obj, old object) field.ErrorList{
		"clusterrolebindings.rbac.authorization.k8s.io":  validateClusterRoleBinding,
		"clusterroles.rbac.authorization.k8s.io":         validateClusterRole,
		"configmaps":                                     validateConfigMap,
		"cronjobs.batch":                                 validateCronJob,
		"customresourcedefinitions.apiextensions.k8s.io": structural.ValidateDefinition,
		"daemonsets.apps":                                validateDaemonSet,
		"deployments.apps":                               validateDeployment,
		"events":                                         validateEvent,
		"horizontalpodautoscalers.autoscaling":           validateAutoscaler,
		"ingresses.networking.k8s.io":                    validateIngress,
		"jobs.batch":                                     validateJob,
		"leases.coordination.k8s.io":                     validateLease,
		"mutatingwebhookconfigurations.admissionregistration.k8s.io": validateWebhooks,
		"namespaces":                             validateNamespace,
		"networkpolicies.networking.k8s.io":      validateNetworkPolicy,
		"persistentvolumeclaims":                 validateClaim,
		"persistentvolumes":                      validateVolume,
		"poddisruptionbudgets.policy":            validateBudget,
		"pods":                                   validatePod,
		"priorityclasses.scheduling.k8s.io":      validatePriorityClass,
		"replicasets.apps":                       validateReplicaSet,
		"replicationcontrollers":                 validateReplicationController,
		"rolebindings.rbac.authorization.k8s.io": validateRoleBinding,
		"roles.rbac.authorization.k8s.io":        validateRole,
		"secrets":                                validateSecret,
		"services":                               validateService,
		"statefulsets.apps":                      validateStatefulSet,
		"storageclasses.storage.k8s.io":          validateStorageClass,
		"validatingadmissionpolicies.admissionregistration.k8s.io":       validateAdmissionPolicy,
		"validatingadmissionpolicybindings.admissionregistration.k8s.io": validateAdmissionBinding,
		"validatingwebhookconfigurations.admissionregistration.k8s.io":   validateWebhooks,
	}
})
