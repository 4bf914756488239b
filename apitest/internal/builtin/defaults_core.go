package builtin

import (
	"encoding/base64"
	"maps"

	"github.com/anykind/anykind/apitest/internal/nested"
)

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
				setIfAbsent(ingress, "ipMode", "VIP")
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
