package inventory

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

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
	// IsSelector reports that the value of Field is a label selector or a map of labels. It selects objects in the same namespace.
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

// Relations returns the relations of built-in kinds and of the Gateway API: selects, mounts, refers, routes, binds and scales.
func Relations() []Relation {
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

// reference is the value of a relation's field.
type reference struct {
	kind            schema.GroupKind
	namespace, name string // the namespace counts for a namespaced kind only
	selector        labels.Selector
}

// references returns the references of an object by a relation. Values of unexpected types are no references.
func (r *Relation) references(obj *unstructured.Lazy) (all []reference) {
	path, err := unstructured.ParsePath(r.Field)
	if err != nil {
		return nil
	}
	values, err := unstructured.GetAll[any](obj, path...)
	if err != nil {
		return nil
	}
	for _, value := range values {
		ref := reference{kind: r.To, namespace: obj.GetNamespace()}
		fields, isMap := value.(map[string]any)
		switch {
		case r.IsSelector:
			ref.selector = parseSelector(fields)
			if !isMap || ref.selector == nil {
				continue
			}
		case isMap:
			if !ref.read(fields) {
				continue
			}
		default:
			ref.name, _ = value.(string)
		}
		if (ref.name != "" || r.IsSelector) && !slices.ContainsFunc(all, func(known reference) bool { return !r.IsSelector && known == ref }) {
			all = append(all, ref)
		}
	}
	return all
}

// read reads a reference in a map. It reports false for a kind different from r.kind.
func (r *reference) read(fields map[string]any) bool {
	text := func(name string) string {
		value, _ := fields[name].(string)
		return value
	}
	r.name = text("name")
	if namespace := text("namespace"); namespace != "" {
		r.namespace = namespace
	}
	kind := text("kind")
	if kind == "" {
		return !r.kind.Empty()
	}
	group := r.kind.Group
	for _, field := range []string{"group", "apiGroup", "apiVersion"} {
		if value, found := fields[field].(string); found {
			group = value
			if field == "apiVersion" {
				group, _, _ = strings.Cut(value, "/")
				if group == value { // the core group
					group = ""
				}
			}
		}
	}
	named := schema.GroupKind{Group: group, Kind: kind}
	isSame := r.kind.Empty() || r.kind == named
	r.kind = named
	return isSame
}

// parseSelector returns the selector of a LabelSelector or a map of labels, or nil if it is invalid.
func parseSelector(fields map[string]any) labels.Selector {
	text, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	var set labels.Set
	if _, isExpression := fields["matchExpressions"]; !isExpression && json.Unmarshal(text, &set) == nil {
		return labels.SelectorFromSet(set)
	}
	var structured metav1.LabelSelector
	if json.Unmarshal(text, &structured) != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&structured)
	if err != nil {
		return nil
	}
	return selector
}
