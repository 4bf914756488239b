package debugpod

import (
	"fmt"
	"slices"

	"github.com/anykind/anykind/cli/internal/nested"
)

// Profile names the privileges of a debugging container, as in kubectl.
type Profile string

// The profiles. Legacy is deprecated.
const (
	Legacy     Profile = "legacy"
	General    Profile = "general"
	Baseline   Profile = "baseline"
	Restricted Profile = "restricted"
	Netadmin   Profile = "netadmin"
	Sysadmin   Profile = "sysadmin"
)

// ParseProfile returns the profile of a name.
func ParseProfile(name string) (Profile, error) {
	if !slices.Contains([]Profile{Legacy, General, Baseline, Restricted, Netadmin, Sysadmin}, Profile(name)) {
		return "", fmt.Errorf("unknown profile: %s", name)
	}
	return Profile(name), nil
}

// applyTo sets the security context of the debugging container.
func (p Profile) applyTo(container map[string]any) {
	switch p {
	case General:
		addCapabilities(container, "SYS_PTRACE")
	case Baseline:
		delete(container, "securityContext")
	case Restricted:
		container["securityContext"] = map[string]any{
			"runAsNonRoot": true, "allowPrivilegeEscalation": false,
			"capabilities":   map[string]any{"drop": []any{"ALL"}},
			"seccompProfile": map[string]any{"type": "RuntimeDefault"},
		}
	case Netadmin:
		addCapabilities(container, "NET_ADMIN", "NET_RAW")
	case Sysadmin:
		child(container, "securityContext")["privileged"] = true
	case Legacy:
	}
}

// applyToNodePod gives a pod on a node the namespaces and files of the host.
func (p Profile) applyToNodePod(spec, container map[string]any) {
	if p == General {
		delete(container, "securityContext")
	}
	switch p {
	case General, Netadmin, Sysadmin, Legacy:
		spec["hostNetwork"] = true
		spec["hostPID"] = true
		spec["hostIPC"] = true
	case Baseline, Restricted:
	}
	switch p {
	case General, Sysadmin, Legacy:
		spec["volumes"] = []any{map[string]any{"name": "host-root", "hostPath": map[string]any{"path": "/"}}}
		container["volumeMounts"] = []any{map[string]any{"name": "host-root", "mountPath": "/host"}}
	case Baseline, Restricted, Netadmin:
	}
}

// applyToCopy removes what the copy of a pod does not keep, and shares the process namespace.
func (p Profile) applyToCopy(pod map[string]any, keep *Keep) {
	metadata := nested.Map(pod, "metadata")
	if p == Legacy {
		delete(metadata, "labels")
		return
	}
	spec := nested.Map(pod, "spec")
	for field, isKept := range map[string]bool{"labels": keep.Labels, "annotations": keep.Annotations} {
		if !isKept {
			delete(metadata, field)
		}
	}
	probes := map[string]bool{"livenessProbe": keep.Liveness, "readinessProbe": keep.Readiness, "startupProbe": keep.Startup}
	for _, container := range nested.List(spec, "containers") {
		fields, _ := container.(map[string]any)
		for probe, isKept := range probes {
			if !isKept {
				delete(fields, probe)
			}
		}
	}
	if !keep.InitContainers {
		delete(spec, "initContainers")
	}
	if _, isSet := spec["shareProcessNamespace"]; !isSet {
		spec["shareProcessNamespace"] = true
	}
}

func addCapabilities(container map[string]any, names ...any) {
	capabilities := child(child(container, "securityContext"), "capabilities")
	capabilities["add"] = append(nested.List(capabilities, "add"), names...)
}

// child returns the map of a field, and adds a missing map.
func child(fields map[string]any, name string) map[string]any {
	if nested.Map(fields, name) == nil {
		fields[name] = map[string]any{}
	}
	return nested.Map(fields, name)
}

// NeedsRoot reports whether a container has privileges of root, in a pod of a different user.
func NeedsRoot(pod, container map[string]any) bool {
	isRoot := func(context map[string]any) bool {
		user, isSet := context["runAsUser"]
		return isSet && fmt.Sprint(user) == "0"
	}
	context := nested.Map(pod, "spec", "securityContext")
	if _, isSet := context["runAsUser"]; !isSet || isRoot(context) {
		return false
	}
	own := nested.Map(container, "securityContext")
	hasPrivileges := nested.Bool(own, "privileged") || len(nested.List(own, "capabilities", "add")) > 0
	return hasPrivileges && !isRoot(own)
}
