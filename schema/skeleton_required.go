package schema

// selected is the label by which a workload of a skeleton selects its pods.
var selected = map[string]any{"matchLabels": map[string]any{"app": "NAME"}}

var podTemplate = map[string]any{
	"metadata": map[string]any{"labels": map[string]any{"app": "NAME"}},
	"spec":     map[string]any{"containers": []any{container}},
}

var container = map[string]any{"name": "NAME", "image": "registry.k8s.io/pause:3.10"}

var storage = map[string]any{"storage": "1Gi"}

var finishingTemplate = map[string]any{
	"spec": map[string]any{"containers": []any{container}, "restartPolicy": "Never"},
}

// requiredByServer are fields that the API server requires of built-in kinds, although their schemas do not, by the name of the
// schema. NAME is the object's name. A test creates the skeleton of every kind on an API server.
var requiredByServer = map[string]map[string]any{
	"io.k8s.api.core.v1.PodSpec":                   {"containers": []any{container}},
	"io.k8s.api.core.v1.PodTemplate":               {"template": podTemplate},
	"io.k8s.api.core.v1.ReplicationControllerSpec": {"selector": map[string]any{"app": "NAME"}, "template": podTemplate},
	"io.k8s.api.core.v1.ServiceSpec":               {"selector": map[string]any{"app": "NAME"}, "ports": []any{map[string]any{"port": int64(80)}}},
	"io.k8s.api.core.v1.PersistentVolumeClaimSpec": {"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": storage}},
	"io.k8s.api.core.v1.PersistentVolumeSpec": {
		"accessModes": []any{"ReadWriteOnce"}, "capacity": storage, "hostPath": map[string]any{"path": "/var/lib/NAME"},
	},
	"io.k8s.api.apps.v1.ControllerRevision": {"data": map[string]any{}},
	"io.k8s.api.apps.v1.DeploymentSpec":     {"selector": selected, "template": podTemplate},
	"io.k8s.api.apps.v1.DaemonSetSpec":      {"selector": selected, "template": podTemplate},
	"io.k8s.api.apps.v1.ReplicaSetSpec":     {"selector": selected, "template": podTemplate},
	"io.k8s.api.apps.v1.StatefulSetSpec":    {"selector": selected, "template": podTemplate, "serviceName": "NAME"},
	"io.k8s.api.batch.v1.JobSpec":           {"template": finishingTemplate},
	"io.k8s.api.batch.v1.CronJobSpec":       {"schedule": "0 * * * *", "jobTemplate": map[string]any{"spec": map[string]any{"template": finishingTemplate}}},
	"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec": {
		"maxReplicas": int64(3), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "NAME"},
	},
	"io.k8s.api.networking.v1.IngressClassSpec": {"controller": "example.com/NAME"},
	"io.k8s.api.networking.v1.IngressSpec": {
		"defaultBackend": map[string]any{"service": map[string]any{"name": "NAME", "port": map[string]any{"number": int64(80)}}},
	},
	"io.k8s.api.networking.v1.ServiceCIDRSpec":     {"cidrs": []any{"192.0.2.0/24"}},
	"io.k8s.api.rbac.v1.RoleRef":                   {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "NAME"},
	"io.k8s.api.storage.v1.VolumeAttachmentSource": {"persistentVolumeName": "NAME"},
	"io.k8s.api.storage.v1.VolumeAttributesClass":  {"parameters": map[string]any{"type": "NAME"}},
	"io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicySpec": {
		"matchConstraints": matchPods, "reinvocationPolicy": "Never", "mutations": []any{map[string]any{
			"patchType":          "ApplyConfiguration",
			"applyConfiguration": map[string]any{"expression": `Object{metadata: Object.metadata{labels: {"app": "NAME"}}}`},
		}},
	},
	"io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBindingSpec": {"policyName": "NAME"},
	"io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec": {
		"matchConstraints": matchPods, "validations": []any{map[string]any{"expression": "object.metadata.name != ''"}},
	},
	"io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec": {"policyName": "NAME", "validationActions": []any{"Deny"}},
	"io.k8s.api.discovery.v1.EndpointSlice":                                    {"addressType": "IPv4"},
	"io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec": {
		"type": "Limited", "limited": map[string]any{"limitResponse": map[string]any{"type": "Reject"}},
	},
	"io.k8s.api.core.v1.LimitRangeItem":        {"type": "Container"},
	"io.k8s.api.resource.v1.ResourceSliceSpec": {"allNodes": true},
	"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIServiceSpec": {
		"group": "example.com", "version": "v1", "service": map[string]any{"namespace": "default", "name": "example"}, "insecureSkipTLSVerify": true,
		"groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
	},
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec": {
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "examples", "kind": "Example"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object"}}},
		}}},
	},
}

var matchPods = map[string]any{"resourceRules": []any{map[string]any{
	"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"pods"},
}}}
