// Package relation has the references between objects as data, and reads the references of an object:
//
//	for _, r := range relation.BuiltIn() {
//		if r.From != kind {
//			continue
//		}
//		for _, ref := range r.References(obj) {
//			fmt.Println(r.Name, ref.Kind, ref.Namespace, ref.Name) // mounts Secret shop password
//		}
//	}
//
// Owners are no relation: metadata.ownerReferences has them. Package inventory follows relations over a cache.
package relation

import "k8s.io/apimachinery/pkg/runtime/schema"

// Relation is a reference in a field of a kind.
type Relation struct {
	// Name is a verb, such as "mounts".
	Name string
	// From is the kind with the field. To is the kind of the target; the zero value means the kind in the reference.
	From, To schema.GroupKind
	// Field is the path of the reference, as of [unstructured.ParsePath], also with [*]. Its value is the name of the target, or a map
	// with the fields name, kind, namespace and group, apiGroup or apiVersion. All but name are optional: a map with a kind different
	// from To is no reference of this relation.
	Field string
	// IsSelector reports that the value of Field is a label selector or a map of labels. It selects objects in the same namespace, or
	// of a cluster-scoped kind.
	IsSelector bool
}

// parseKind returns the kind of a text in the form KIND or KIND.GROUP.
func parseKind(text string) schema.GroupKind { return schema.ParseGroupKind(text) }

// podFields are the references of pods, by target and verb.
var podFields = []struct{ name, to, field string }{
	{"mounts", "ConfigMap", "volumes[*].configMap.name"},
	{"mounts", "ConfigMap", "volumes[*].projected.sources[*].configMap.name"},
	{"mounts", "Secret", "volumes[*].secret.secretName"},
	{"mounts", "Secret", "volumes[*].projected.sources[*].secret.name"},
	{"mounts", "PersistentVolumeClaim", "volumes[*].persistentVolumeClaim.claimName"},
	{"refers", "ConfigMap", "containers[*].env[*].valueFrom.configMapKeyRef.name"},
	{"refers", "ConfigMap", "containers[*].envFrom[*].configMapRef.name"},
	{"refers", "ConfigMap", "initContainers[*].env[*].valueFrom.configMapKeyRef.name"},
	{"refers", "ConfigMap", "initContainers[*].envFrom[*].configMapRef.name"},
	{"refers", "Secret", "containers[*].env[*].valueFrom.secretKeyRef.name"},
	{"refers", "Secret", "containers[*].envFrom[*].secretRef.name"},
	{"refers", "Secret", "initContainers[*].env[*].valueFrom.secretKeyRef.name"},
	{"refers", "Secret", "initContainers[*].envFrom[*].secretRef.name"},
	{"refers", "Secret", "imagePullSecrets[*].name"},
	{"refers", "ServiceAccount", "serviceAccountName"},
	{"refers", "PriorityClass.scheduling.k8s.io", "priorityClassName"},
	{"refers", "Node", "nodeName"},
}

// podSpecs are the kinds with a pod spec, and the path of the spec.
var podSpecs = []struct{ kind, path string }{
	{"Pod", "spec."},
	{"PodTemplate", "template.spec."},
	{"ReplicationController", "spec.template.spec."},
	{"DaemonSet.apps", "spec.template.spec."},
	{"Deployment.apps", "spec.template.spec."},
	{"ReplicaSet.apps", "spec.template.spec."},
	{"StatefulSet.apps", "spec.template.spec."},
	{"Job.batch", "spec.template.spec."},
	{"CronJob.batch", "spec.jobTemplate.spec.template.spec."},
}

// otherFields are the references of the remaining kinds.
var otherFields = []struct {
	name, from, to, field string
	isSelector            bool
}{
	{"selects", "Service", "Pod", "spec.selector", true},
	{"selects", "PodDisruptionBudget.policy", "Pod", "spec.selector", true},
	{"selects", "NetworkPolicy.networking.k8s.io", "Pod", "spec.podSelector", true},
	{"routes", "Ingress.networking.k8s.io", "Service", "spec.defaultBackend.service.name", false},
	{"routes", "Ingress.networking.k8s.io", "Service", "spec.rules[*].http.paths[*].backend.service.name", false},
	{"refers", "Ingress.networking.k8s.io", "Secret", "spec.tls[*].secretName", false},
	{"refers", "Ingress.networking.k8s.io", "IngressClass.networking.k8s.io", "spec.ingressClassName", false},
	{"refers", "Gateway.gateway.networking.k8s.io", "GatewayClass.gateway.networking.k8s.io", "spec.gatewayClassName", false},
	{"refers", "Gateway.gateway.networking.k8s.io", "Secret", "spec.listeners[*].tls.certificateRefs[*]", false},
	{"routes", "HTTPRoute.gateway.networking.k8s.io", "Service", "spec.rules[*].backendRefs[*]", false},
	{"refers", "HTTPRoute.gateway.networking.k8s.io", "Gateway.gateway.networking.k8s.io", "spec.parentRefs[*]", false},
	{"routes", "GRPCRoute.gateway.networking.k8s.io", "Service", "spec.rules[*].backendRefs[*]", false},
	{"refers", "GRPCRoute.gateway.networking.k8s.io", "Gateway.gateway.networking.k8s.io", "spec.parentRefs[*]", false},
	{"binds", "RoleBinding.rbac.authorization.k8s.io", "Role.rbac.authorization.k8s.io", "roleRef", false},
	{"binds", "RoleBinding.rbac.authorization.k8s.io", "ClusterRole.rbac.authorization.k8s.io", "roleRef", false},
	{"binds", "RoleBinding.rbac.authorization.k8s.io", "ServiceAccount", "subjects[*]", false},
	{"binds", "ClusterRoleBinding.rbac.authorization.k8s.io", "ClusterRole.rbac.authorization.k8s.io", "roleRef", false},
	{"binds", "ClusterRoleBinding.rbac.authorization.k8s.io", "ServiceAccount", "subjects[*]", false},
	{"scales", "HorizontalPodAutoscaler.autoscaling", "", "spec.scaleTargetRef", false},
	{"refers", "StatefulSet.apps", "Service", "spec.serviceName", false},
	{"refers", "PersistentVolumeClaim", "PersistentVolume", "spec.volumeName", false},
	{"refers", "PersistentVolumeClaim", "StorageClass.storage.k8s.io", "spec.storageClassName", false},
	{"refers", "ServiceAccount", "Secret", "secrets[*].name", false},
	{"refers", "ServiceAccount", "Secret", "imagePullSecrets[*].name", false},
}

// BuiltIn returns the relations of built-in kinds and of the Gateway API: selects, mounts, refers, routes, binds and scales.
func BuiltIn() []Relation {
	var all []Relation
	for _, spec := range podSpecs {
		for _, f := range podFields {
			all = append(all, Relation{Name: f.name, From: parseKind(spec.kind), To: parseKind(f.to), Field: spec.path + f.field})
		}
	}
	for _, f := range otherFields {
		all = append(all, Relation{Name: f.name, From: parseKind(f.from), To: parseKind(f.to), Field: f.field, IsSelector: f.isSelector})
	}
	return all
}
