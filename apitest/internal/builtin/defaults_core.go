package builtin

import (
	"encoding/base64"
	"maps"
)

func coreDefaults() map[string]func(object) {
	return map[string]func(object){
		"api/core/v1.Service":     defaultService,
		"api/core/v1.ServicePort": defaultServicePort,
		"api/core/v1.Namespace": func(namespace object) {
			if name := text(child(namespace, "metadata"), "name"); name != "" {
				ensure(child(namespace, "metadata"), "labels")["kubernetes.io/metadata.name"] = name
			}
			setIfAbsent(ensure(namespace, "status"), "phase", "Active")
		},
		"api/core/v1.Secret": defaultSecret,
		"api/core/v1.PersistentVolume": func(volume object) {
			setIfAbsent(ensure(volume, "status"), "phase", "Pending")
			spec := ensure(volume, "spec")
			setIfAbsent(spec, "persistentVolumeReclaimPolicy", "Retain")
			setIfAbsent(spec, "volumeMode", "Filesystem")
		},
		"api/core/v1.PersistentVolumeClaim": func(claim object) {
			setIfAbsent(ensure(claim, "status"), "phase", "Pending")
		},
		"api/core/v1.PersistentVolumeClaimSpec": func(spec object) { setIfAbsent(spec, "volumeMode", "Filesystem") },
		"api/core/v1.EndpointPort":              func(port object) { setIfAbsent(port, "protocol", "TCP") },
		"api/core/v1.NodeStatus": func(status object) {
			if status["allocatable"] == nil && status["capacity"] != nil {
				status["allocatable"] = deepCopy(status["capacity"])
			}
		},
		"api/core/v1.LimitRangeItem": defaultLimitRange,
		"api/core/v1.ReplicationController": func(controller object) {
			spec := ensure(controller, "spec")
			setIfAbsent(spec, "replicas", int64(1))
			if labels := child(spec, "template", "metadata", "labels"); len(labels) > 0 {
				setIfAbsent(spec, "selector", maps.Clone(labels))
				setIfAbsent(ensure(controller, "metadata"), "labels", maps.Clone(labels))
			}
		},
	}
}

func defaultService(service object) {
	spec := ensure(service, "spec")
	setIfAbsent(spec, "sessionAffinity", "None")
	switch text(spec, "sessionAffinity") {
	case "None":
		delete(spec, "sessionAffinityConfig")
	case "ClientIP":
		if child(spec, "sessionAffinityConfig", "clientIP")["timeoutSeconds"] == nil {
			spec["sessionAffinityConfig"] = object{"clientIP": object{"timeoutSeconds": int64(10800)}}
		}
	}
	setIfAbsent(spec, "type", "ClusterIP")
	typ := text(spec, "type")
	if typ == "NodePort" || typ == "LoadBalancer" || typ == "ClusterIP" && len(list(spec, "externalIPs")) > 0 {
		setIfAbsent(spec, "externalTrafficPolicy", "Cluster")
	}
	if typ != "ExternalName" {
		setIfAbsent(spec, "internalTrafficPolicy", "Cluster")
	}
	if typ == "LoadBalancer" {
		setIfAbsent(spec, "allocateLoadBalancerNodePorts", true)
		for _, ingress := range objects(child(service, "status", "loadBalancer"), "ingress") {
			if text(ingress, "ip") != "" {
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
	if plain := child(secret, "stringData"); len(plain) > 0 {
		data := ensure(secret, "data")
		for name, value := range plain {
			value, _ := value.(string)
			data[name] = base64.StdEncoding.EncodeToString([]byte(value))
		}
	}
	delete(secret, "stringData")
}

func defaultLimitRange(item object) {
	if text(item, "type") != "Container" {
		return
	}
	limits := ensure(item, "default")
	requests := ensure(item, "defaultRequest")
	for name, quantity := range child(item, "max") {
		setIfAbsent(limits, name, quantity)
	}
	for name, quantity := range limits {
		setIfAbsent(requests, name, quantity)
	}
	for name, quantity := range child(item, "min") {
		setIfAbsent(requests, name, quantity)
	}
	for _, name := range []string{"default", "defaultRequest"} {
		if len(child(item, name)) == 0 {
			delete(item, name)
		}
	}
}
