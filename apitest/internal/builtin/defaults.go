package builtin

import (
	"encoding/base64"
	"maps"
	"math"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// Default sets the defaults of a decoded object. As in the API server, defaults belong to a Go type and apply to each of its
// values: a pod's defaults apply to the templates of all workloads.
func Default(kind schema.GroupVersionKind, obj map[string]any) {
	table := goTypes()
	if typ, ok := table.kinds[kind]; ok {
		(&defaulter{table, defaultsByType()}).apply(typ, obj)
	}
}

type defaulter struct {
	table  *typeTable
	byType map[string]func(object)
}

func (d *defaulter) apply(typ string, value any) {
	typ = strings.TrimPrefix(typ, "*")
	switch value := value.(type) {
	case []any:
		element, isSlice := strings.CutPrefix(typ, "[]")
		if named, ok := d.table.types[typ]; ok {
			element, isSlice = strings.CutPrefix(named.underlying, "[]")
		}
		for _, item := range value {
			if isSlice {
				d.apply(element, item)
			}
		}
	case object:
		if strings.HasPrefix(typ, "map[") {
			_, element, _ := strings.Cut(typ[4:], "]")
			for _, item := range value {
				d.apply(element, item)
			}
			return
		}
		named, ok := d.table.types[typ]
		if !ok || named.underlying != "struct" || strings.HasPrefix(typ, "meta/v1.") {
			return
		}
		if set := d.byType[typ]; set != nil {
			set(value)
		}
		for i := range named.fields {
			switch item := value[named.fields[i].name].(type) {
			case object, []any:
				d.apply(named.fields[i].typ, item)
			}
		}
	}
}

// defaultsByType caches typeDefaults.
var defaultsByType = sync.OnceValue(typeDefaults)

// typeDefaults returns the defaults by Go type.
func typeDefaults() map[string]func(object) {
	all := map[string]func(object){}
	for _, group := range []map[string]func(object){
		podDefaults(), volumeDefaults(), coreDefaults(), appsDefaults(), batchDefaults(), otherDefaults(), admissionDefaults(), definitionDefaults(),
	} {
		for typ, set := range group {
			all[typ] = set
		}
	}
	return all
}

func appsDefaults() map[string]func(object) {
	return map[string]func(object){
		"api/apps/v1.Deployment":  defaultDeployment,
		"api/apps/v1.StatefulSet": defaultStatefulSet,
		"api/apps/v1.DaemonSet": func(set object) {
			spec := nested.EnsureMap(set, "spec")
			strategy := nested.EnsureMap(spec, "updateStrategy")
			setIfAbsent(strategy, "type", "RollingUpdate")
			if nested.String(strategy, "type") == "RollingUpdate" {
				setIfNil(nested.EnsureMap(strategy, "rollingUpdate"), "maxUnavailable", int64(1))
				setIfNil(nested.EnsureMap(strategy, "rollingUpdate"), "maxSurge", int64(0))
			}
			setIfAbsent(spec, "revisionHistoryLimit", int64(10))
		},
		"api/apps/v1.ReplicaSet": func(set object) { setIfAbsent(nested.EnsureMap(set, "spec"), "replicas", int64(1)) },
	}
}

func defaultDeployment(deployment object) {
	spec := nested.EnsureMap(deployment, "spec")
	setIfAbsent(spec, "replicas", int64(1))
	strategy := nested.EnsureMap(spec, "strategy")
	setIfAbsent(strategy, "type", "RollingUpdate")
	if nested.String(strategy, "type") == "RollingUpdate" {
		setIfNil(nested.EnsureMap(strategy, "rollingUpdate"), "maxUnavailable", "25%")
		setIfNil(nested.EnsureMap(strategy, "rollingUpdate"), "maxSurge", "25%")
	}
	setIfAbsent(spec, "revisionHistoryLimit", int64(10))
	setIfAbsent(spec, "progressDeadlineSeconds", int64(600))
}

func defaultStatefulSet(set object) {
	spec := nested.EnsureMap(set, "spec")
	setIfAbsent(spec, "podManagementPolicy", "OrderedReady")
	strategy := nested.EnsureMap(spec, "updateStrategy")
	if nested.String(strategy, "type") == "" {
		strategy["type"] = "RollingUpdate"
		nested.EnsureMap(strategy, "rollingUpdate")
	}
	if rolling := nested.Map(strategy, "rollingUpdate"); rolling != nil && nested.String(strategy, "type") == "RollingUpdate" {
		setIfAbsent(rolling, "partition", int64(0))
	}
	retention := nested.EnsureMap(spec, "persistentVolumeClaimRetentionPolicy")
	setIfAbsent(retention, "whenDeleted", "Retain")
	setIfAbsent(retention, "whenScaled", "Retain")
	setIfAbsent(spec, "replicas", int64(1))
	setIfAbsent(spec, "revisionHistoryLimit", int64(10))
	for _, claim := range nested.Maps(spec, "volumeClaimTemplates") {
		setIfAbsent(claim, "apiVersion", "v1")
		setIfAbsent(claim, "kind", "PersistentVolumeClaim")
	}
}

func batchDefaults() map[string]func(object) {
	return map[string]func(object){
		"api/batch/v1.Job": defaultJob,
		"api/batch/v1.CronJob": func(cron object) {
			spec := nested.EnsureMap(cron, "spec")
			setIfAbsent(spec, "concurrencyPolicy", "Allow")
			setIfAbsent(spec, "suspend", false)
			setIfAbsent(spec, "successfulJobsHistoryLimit", int64(3))
			setIfAbsent(spec, "failedJobsHistoryLimit", int64(1))
		},
		"api/batch/v1.PodFailurePolicyOnPodConditionsPattern": func(pattern object) { setIfAbsent(pattern, "status", "True") },
	}
}

func defaultJob(job object) {
	spec := nested.EnsureMap(job, "spec")
	if spec["completions"] == nil && spec["parallelism"] == nil {
		spec["completions"] = int64(1)
	}
	setIfAbsent(spec, "parallelism", int64(1))
	if spec["backoffLimitPerIndex"] != nil {
		setIfAbsent(spec, "backoffLimit", int64(math.MaxInt32))
	}
	setIfAbsent(spec, "backoffLimit", int64(6))
	if labels := nested.Map(spec, "template", "metadata", "labels"); len(labels) > 0 {
		setIfAbsent(nested.EnsureMap(job, "metadata"), "labels", labels) // shared map, as in the API server: createJob adds to both
	}
	setIfNil(spec, "completionMode", "NonIndexed")
	setIfAbsent(spec, "suspend", false)
	if spec["podFailurePolicy"] != nil {
		setIfNil(spec, "podReplacementPolicy", "Failed")
	}
	setIfNil(spec, "podReplacementPolicy", "TerminatingOrFailed")
	setIfAbsent(spec, "manualSelector", false)
}

func coreDefaults() map[string]func(object) {
	return map[string]func(object){
		"api/core/v1.Service":     defaultService,
		"api/core/v1.ServicePort": defaultServicePort,
		"api/core/v1.Namespace": func(namespace object) {
			if name := nested.String(namespace, "metadata", "name"); name != "" {
				nested.EnsureMap(nested.Map(namespace, "metadata"), "labels")["kubernetes.io/metadata.name"] = name
			}
			setIfAbsent(nested.EnsureMap(namespace, "status"), "phase", "Active")
		},
		"api/core/v1.Secret": defaultSecret,
		"api/core/v1.PersistentVolume": func(volume object) {
			setIfAbsent(nested.EnsureMap(volume, "status"), "phase", "Pending")
			spec := nested.EnsureMap(volume, "spec")
			setIfAbsent(spec, "persistentVolumeReclaimPolicy", "Retain")
			setIfNil(spec, "volumeMode", "Filesystem")
		},
		"api/core/v1.PersistentVolumeClaim": func(claim object) {
			setIfAbsent(nested.EnsureMap(claim, "status"), "phase", "Pending")
		},
		"api/core/v1.PersistentVolumeClaimSpec": func(spec object) { setIfNil(spec, "volumeMode", "Filesystem") },
		"api/core/v1.EndpointPort":              func(port object) { setIfAbsent(port, "protocol", "TCP") },
		"api/core/v1.NodeStatus": func(status object) {
			if status["allocatable"] == nil && status["capacity"] != nil {
				status["allocatable"] = deepCopy(status["capacity"])
			}
		},
		"api/core/v1.LimitRangeItem": defaultLimitRange,
		"api/core/v1.ReplicationController": func(controller object) {
			spec := nested.EnsureMap(controller, "spec")
			setIfAbsent(spec, "replicas", int64(1))
			if labels := nested.Map(spec, "template", "metadata", "labels"); len(labels) > 0 {
				setIfAbsent(spec, "selector", maps.Clone(labels))
				setIfAbsent(nested.EnsureMap(controller, "metadata"), "labels", maps.Clone(labels))
			}
		},
	}
}

func defaultService(service object) {
	spec := nested.EnsureMap(service, "spec")
	setIfAbsent(spec, "sessionAffinity", "None")
	switch nested.String(spec, "sessionAffinity") {
	case "None":
		delete(spec, "sessionAffinityConfig")
	case "ClientIP":
		if nested.Map(spec, "sessionAffinityConfig", "clientIP")["timeoutSeconds"] == nil {
			spec["sessionAffinityConfig"] = object{"clientIP": object{"timeoutSeconds": int64(10800)}}
		}
	}
	setIfAbsent(spec, "type", "ClusterIP")
	typ := nested.String(spec, "type")
	if typ == "NodePort" || typ == "LoadBalancer" || typ == "ClusterIP" && len(nested.Slice(spec, "externalIPs")) > 0 {
		setIfAbsent(spec, "externalTrafficPolicy", "Cluster")
	}
	if typ != "ExternalName" {
		setIfNil(spec, "internalTrafficPolicy", "Cluster")
	}
	if typ == "LoadBalancer" {
		setIfAbsent(spec, "allocateLoadBalancerNodePorts", true)
		for _, ingress := range nested.Maps(service, "status", "loadBalancer", "ingress") {
			if nested.String(ingress, "ip") != "" {
				setIfNil(ingress, "ipMode", "VIP")
			}
		}
	}
}

func defaultServicePort(port object) {
	setIfAbsent(port, "protocol", "TCP")
	setIfZero(port, "targetPort", port["port"])
}

// defaultSecret sets the type and moves stringData into data, like the API server's decoder.
func defaultSecret(secret object) {
	setIfAbsent(secret, "type", "Opaque")
	if plain := nested.Map(secret, "stringData"); len(plain) > 0 {
		data := nested.EnsureMap(secret, "data")
		for name, value := range plain {
			value, _ := value.(string)
			data[name] = base64.StdEncoding.EncodeToString([]byte(value))
		}
	}
	delete(secret, "stringData")
}

func defaultLimitRange(item object) {
	if nested.String(item, "type") != "Container" {
		return
	}
	limits := nested.EnsureMap(item, "default")
	requests := nested.EnsureMap(item, "defaultRequest")
	for name, quantity := range nested.Map(item, "max") {
		setIfAbsent(limits, name, quantity)
	}
	for name, quantity := range limits {
		setIfAbsent(requests, name, quantity)
	}
	for name, quantity := range nested.Map(item, "min") {
		setIfAbsent(requests, name, quantity)
	}
	for _, name := range []string{"default", "defaultRequest"} {
		if len(nested.Map(item, name)) == 0 {
			delete(item, name)
		}
	}
}
