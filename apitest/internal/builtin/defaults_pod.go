package builtin

import (
	"regexp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func podDefaults() map[string]func(object) {
	return map[string]func(object){
		"api/core/v1.Pod":     defaultPod,
		"api/core/v1.PodSpec": defaultPodSpec,
		"api/core/v1.Container": func(c object) {
			defaultContainer(c)
		},
		"api/core/v1.EphemeralContainer": func(c object) {
			defaultContainer(c)
		},
		"api/core/v1.ContainerPort": func(port object) { setIfAbsent(port, "protocol", "TCP") },
		"api/core/v1.Probe": func(probe object) {
			setIfZero(probe, "timeoutSeconds", int64(1))
			setIfZero(probe, "periodSeconds", int64(10))
			setIfZero(probe, "successThreshold", int64(1))
			setIfZero(probe, "failureThreshold", int64(3))
		},
		"api/core/v1.HTTPGetAction": func(get object) {
			setIfAbsent(get, "path", "/")
			setIfAbsent(get, "scheme", "HTTP")
		},
		"api/core/v1.GRPCAction":          func(grpc object) { setIfAbsent(grpc, "service", "") },
		"api/core/v1.ObjectFieldSelector": func(selector object) { setIfAbsent(selector, "apiVersion", "v1") },
		"api/core/v1.FileKeySelector":     func(selector object) { setIfAbsent(selector, "optional", false) },
	}
}

func defaultPod(pod object) {
	spec := nested.EnsureMap(pod, "spec")
	for _, name := range []string{"initContainers", "containers"} {
		for _, container := range nested.Maps(spec, name) {
			limits := nested.Map(container, "resources", "limits")
			if limits == nil {
				continue
			}
			requests := nested.EnsureMap(nested.Map(container, "resources"), "requests")
			for resource, quantity := range limits {
				setIfAbsent(requests, resource, quantity)
			}
		}
	}
	setIfAbsent(spec, "enableServiceLinks", true)
	if !nested.Bool(spec, "hostNetwork") {
		return
	}
	for _, name := range []string{"initContainers", "containers"} {
		for _, container := range nested.Maps(spec, name) {
			for _, port := range nested.Maps(container, "ports") {
				setIfZero(port, "hostPort", port["containerPort"])
			}
		}
	}
}

func defaultPodSpec(spec object) {
	setIfAbsent(spec, "dnsPolicy", "ClusterFirst")
	setIfAbsent(spec, "restartPolicy", "Always")
	setIfAbsent(spec, "securityContext", object{})
	setIfAbsent(spec, "terminationGracePeriodSeconds", int64(30))
	setIfAbsent(spec, "schedulerName", "default-scheduler")
	// serviceAccount is the deprecated name of serviceAccountName
	if nested.String(spec, "serviceAccountName") == "" && nested.String(spec, "serviceAccount") != "" {
		spec["serviceAccountName"] = spec["serviceAccount"]
	}
	if name := nested.String(spec, "serviceAccountName"); name != "" {
		spec["serviceAccount"] = name
	}
}

func defaultContainer(container object) {
	setIfAbsent(container, "imagePullPolicy", pullPolicy(nested.String(container, "image")))
	setIfAbsent(container, "terminationMessagePath", "/dev/termination-log")
	setIfAbsent(container, "terminationMessagePolicy", "File")
}

// imageName matches valid image names. Its submatches are the tag and the digest.
var imageName = sync.OnceValue(func() *regexp.Regexp {
	const component = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	const domain = `(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`
	return regexp.MustCompile(`^(?:` + domain + `/)?` + component + `(?:/` + component + `)*(?::(\w[\w.-]{0,127}))?(@[A-Za-z][A-Za-z0-9.+_-]*:[0-9a-fA-F]{32,})?$`)
})

// pullPolicy returns the default imagePullPolicy: Always for the tag latest, or if there is neither a tag nor a digest.
// Otherwise, and for unparseable names, it is IfNotPresent.
func pullPolicy(image string) string {
	parts := imageName().FindStringSubmatch(image)
	if parts != nil && (parts[1] == "latest" || parts[1] == "" && parts[2] == "") {
		return "Always"
	}
	return "IfNotPresent"
}

func volumeDefaults() map[string]func(object) {
	mode := func(volume object) { setIfAbsent(volume, "defaultMode", int64(0o644)) }
	return map[string]func(object){
		"api/core/v1.Volume": func(volume object) {
			if len(volume) <= 1 { // name only
				volume["emptyDir"] = object{}
			}
		},
		"api/core/v1.ImageVolumeSource": func(volume object) {
			setIfAbsent(volume, "pullPolicy", pullPolicy(nested.String(volume, "reference")))
		},
		"api/core/v1.SecretVolumeSource":      mode,
		"api/core/v1.ConfigMapVolumeSource":   mode,
		"api/core/v1.DownwardAPIVolumeSource": mode,
		"api/core/v1.ProjectedVolumeSource":   mode,
		"api/core/v1.ServiceAccountTokenProjection": func(token object) {
			setIfAbsent(token, "expirationSeconds", int64(3600))
		},
		"api/core/v1.HostPathVolumeSource":          func(volume object) { setIfAbsent(volume, "type", "") },
		"api/core/v1.ISCSIVolumeSource":             defaultISCSI,
		"api/core/v1.ISCSIPersistentVolumeSource":   defaultISCSI,
		"api/core/v1.RBDVolumeSource":               defaultRBD,
		"api/core/v1.RBDPersistentVolumeSource":     defaultRBD,
		"api/core/v1.ScaleIOVolumeSource":           defaultScaleIO,
		"api/core/v1.ScaleIOPersistentVolumeSource": defaultScaleIO,
		"api/core/v1.AzureDiskVolumeSource": func(volume object) {
			setIfNil(volume, "cachingMode", "ReadWrite")
			setIfNil(volume, "kind", "Shared")
			setIfNil(volume, "fsType", "ext4")
			setIfAbsent(volume, "readOnly", false)
		},
	}
}

func defaultISCSI(volume object) { setIfAbsent(volume, "iscsiInterface", "default") }

func defaultRBD(volume object) {
	setIfAbsent(volume, "pool", "rbd")
	setIfAbsent(volume, "user", "admin")
	setIfAbsent(volume, "keyring", "/etc/ceph/keyring")
}

func defaultScaleIO(volume object) {
	setIfAbsent(volume, "storageMode", "ThinProvisioned")
	setIfAbsent(volume, "fsType", "xfs")
}

// Admit implements admission plugins of the API server for a new object: a pod gets tolerations for not-ready and unreachable
// nodes and a priority, a volume or claim its finalizer.
func Admit(resource schema.GroupResource, obj map[string]any) {
	switch resource.String() {
	case "pods":
		admitPod(obj)
	case "persistentvolumes":
		addFinalizer(obj, "kubernetes.io/pv-protection")
	case "persistentvolumeclaims":
		addFinalizer(obj, "kubernetes.io/pvc-protection")
	}
}

// AdmitUpdate implements the same plugins for an update: a pod keeps its priority and gets missing tolerations.
func AdmitUpdate(resource schema.GroupResource, obj, old map[string]any) {
	if resource.String() != "pods" {
		return
	}
	spec := nested.EnsureMap(obj, "spec")
	before := nested.Map(old, "spec")
	for _, name := range []string{"priority", "preemptionPolicy"} {
		if spec[name] == nil {
			copyField(spec, before, name)
		}
	}
	admitPod(obj)
}

func addFinalizer(obj object, name string) {
	metadata := nested.EnsureMap(obj, "metadata")
	if finalizers := nested.Slice(metadata, "finalizers"); !slices.Contains(finalizers, any(name)) {
		metadata["finalizers"] = append(finalizers, name)
	}
}

func admitPod(pod object) {
	spec := nested.EnsureMap(pod, "spec")
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		if !tolerates(spec, key) {
			spec["tolerations"] = append(nested.Slice(spec, "tolerations"),
				object{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)})
		}
	}
	setIfAbsent(spec, "priority", int64(0))
	setIfNil(spec, "preemptionPolicy", "PreemptLowerPriority")
}

// tolerates reports whether a pod has a NoExecute toleration for the taint.
func tolerates(spec object, key string) bool {
	for _, toleration := range nested.Maps(spec, "tolerations") {
		k := nested.String(toleration, "key")
		effect := nested.String(toleration, "effect")
		if (k == key || k == "") && (effect == "NoExecute" || effect == "") {
			return true
		}
	}
	return false
}

func deepCopy(value any) any { return runtime.DeepCopyJSONValue(value) }
