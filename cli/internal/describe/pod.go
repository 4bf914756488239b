package describe

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// podFields describes a pod in kubectl's sections.
func podFields(obj *unstructured.Object, now time.Time) []field {
	pod := obj.Object
	fields := nameFields(obj)
	fields = append(fields, text("Priority", or(textAt(pod, "spec", "priority"), "0")))
	fields = append(fields, optional("Priority Class Name", textAt(pod, "spec", "priorityClassName"))...)
	fields = append(fields, optional("Runtime Class Name", textAt(pod, "spec", "runtimeClassName"))...)
	fields = append(fields, text("Service Account", or(textAt(pod, "spec", "serviceAccountName"), none)))
	node := textAt(pod, "spec", "nodeName")
	if ip := textAt(pod, "status", "hostIP"); node != "" && ip != "" {
		node += "/" + ip
	}
	fields = append(fields, text("Node", or(node, none)))
	if started := textAt(pod, "status", "startTime"); started != "" {
		fields = append(fields, text("Start Time", timeText(started)))
	}
	fields = append(fields, labelFields(obj)...)
	fields = append(fields, podStatusFields(obj, now)...)
	fields = append(fields, optional("SeccompProfile", textAt(pod, "spec", "securityContext", "seccompProfile", "type"))...)
	fields = append(fields, text("IP", textAt(pod, "status", "podIP")))
	fields = append(fields, text("IPs", fieldOfEach(nested.List(pod, "status", "podIPs"), "ip")...))
	fields = append(fields, ownerFields(obj)...)
	for _, kind := range []struct{ label, spec, status string }{
		{"Init Containers", "initContainers", "initContainerStatuses"},
		{"Containers", "containers", "containerStatuses"},
		{"Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"},
	} {
		containers := nested.List(pod, "spec", kind.spec)
		if len(containers) > 0 {
			fields = append(fields, containersField(kind.label, containers, nested.List(pod, "status", kind.status), true))
		}
	}
	if conditions := nested.List(pod, "status", "conditions"); len(conditions) > 0 {
		fields = append(fields, conditionsField(conditions, now))
	}
	fields = append(fields, volumesField(nested.List(pod, "spec", "volumes")))
	fields = append(fields, text("QoS Class", or(textAt(pod, "status", "qosClass"), none)))
	return append(fields, schedulingFields(nested.Map(pod, "spec"))...)
}

// fieldOfEach returns a field of each element of a list.
func fieldOfEach(list []any, name string) (values []string) {
	for _, element := range list {
		values = append(values, textAt(element, name))
	}
	return values
}

// podStatusFields returns a pod's phase with its reason.
func podStatusFields(obj *unstructured.Object, now time.Time) []field {
	status := or(textAt(obj.Object, "status", "phase"), none)
	if deleted := textAt(obj.Object, "metadata", "deletionTimestamp"); deleted != "" {
		status = "Terminating (lasts " + age(deleted, now) + ")"
	}
	fields := []field{text("Status", status)}
	if obj.GetDeletionTimestamp() != nil {
		grace := textAt(obj.Object, "metadata", "deletionGracePeriodSeconds")
		fields = append(fields, text("Termination Grace Period", grace+"s"))
		if finalizers := obj.GetFinalizers(); len(finalizers) > 0 {
			fields = append(fields, text("Finalizers", finalizers...))
		}
	}
	fields = append(fields, optional("Reason", textAt(obj.Object, "status", "reason"))...)
	return append(fields, optional("Message", textAt(obj.Object, "status", "message"))...)
}

// containersField describes containers. With ofPod it includes their states; a pod template has no states.
func containersField(label string, containers, statuses []any, ofPod bool) field {
	all := field{label: label}
	for _, c := range containers {
		name := textAt(c, "name")
		var status any
		if i := slices.IndexFunc(statuses, func(s any) bool { return textAt(s, "name") == name }); i >= 0 {
			status = statuses[i]
		}
		all.fields = append(all.fields, field{label: name, fields: containerFields(c, status, ofPod)})
	}
	return all
}

func containerFields(c, status any, ofPod bool) (fields []field) {
	if ofPod {
		fields = append(fields, text("Container ID", textAt(status, "containerID")))
	}
	fields = append(fields, text("Image", textAt(c, "image")))
	if ofPod {
		fields = append(fields, text("Image ID", textAt(status, "imageID")))
	}
	fields = append(fields, portFields(nested.List(c, "ports"))...)
	for _, name := range []string{"command", "args"} {
		if list := nested.List(c, name); len(list) > 0 {
			fields = append(fields, text(title(name), commandLines(list)...))
		}
	}
	if status != nil {
		fields = append(fields, stateFields(status)...)
	}
	for _, kind := range []string{"limits", "requests"} {
		if values := nested.Map(c, "resources", kind); len(values) > 0 {
			var below []field
			for _, name := range slices.Sorted(maps.Keys(values)) {
				below = append(below, text(name, scalar(values[name])))
			}
			fields = append(fields, field{label: title(kind), fields: below})
		}
	}
	for _, kind := range []string{"liveness", "readiness", "startup"} {
		if probe := nested.Map(c, kind+"Probe"); probe != nil {
			fields = append(fields, text(title(kind), probeText(probe)))
		}
	}
	return append(fields, environmentFields(c)...)
}

// commandLines returns the lines of all arguments.
func commandLines(list []any) (lines []string) {
	for _, argument := range texts(list) {
		lines = append(lines, strings.Split(argument, "\n")...)
	}
	return lines
}

// portFields returns the container ports and host ports of a container.
func portFields(ports []any) []field {
	var inside, outside []string
	for _, p := range ports {
		protocol := or(textAt(p, "protocol"), "TCP")
		port := textAt(p, "containerPort") + "/" + protocol
		if name := textAt(p, "name"); name != "" {
			port += " (" + name + ")"
		}
		inside = append(inside, port)
		outside = append(outside, strconv.FormatInt(nested.Int(p, "hostPort"), 10)+"/"+protocol)
	}
	plural := ""
	if len(ports) > 1 {
		plural = "s"
	}
	return []field{
		text("Port"+plural, or(strings.Join(inside, ", "), none)), text("Host Port"+plural, or(strings.Join(outside, ", "), none)),
	}
}

// stateFields returns the current state of a container, and its state before the last restart.
func stateFields(status any) []field {
	fields := stateField("State", nested.Map(status, "state"))
	if last := nested.Map(status, "lastState"); len(last) > 0 {
		fields = append(fields, stateField("Last State", last)...)
	}
	ready := "False"
	if nested.Bool(status, "ready") {
		ready = "True"
	}
	return append(fields, text("Ready", ready), text("Restart Count", strconv.FormatInt(nested.Int(status, "restartCount"), 10)))
}

func stateField(label string, state map[string]any) []field {
	fields := []field{text(label, "Waiting")}
	for name, details := range state {
		fields = []field{text(label, title(name))}
		var below []field
		below = append(below, optional(indent+"Reason", textAt(details, "reason"))...)
		below = append(below, optional(indent+"Message", textAt(details, "message"))...)
		if name == "terminated" {
			below = append(below, text(indent+"Exit Code", strconv.FormatInt(nested.Int(details, "exitCode"), 10)))
			below = append(below, optional(indent+"Signal", textAt(details, "signal"))...)
		}
		below = append(below, optional(indent+"Started", timeText(textAt(details, "startedAt")))...)
		below = append(below, optional(indent+"Finished", timeText(textAt(details, "finishedAt")))...)
		fields = append(fields, below...)
	}
	return fields
}

// probeText formats a probe in a line.
func probeText(probe map[string]any) string {
	what := "unknown"
	switch {
	case probe["exec"] != nil:
		what = fmt.Sprintf("exec %v", texts(nested.List(probe, "exec", "command")))
	case probe["httpGet"] != nil:
		get := probe["httpGet"]
		what = fmt.Sprintf("http-get %s://%s:%s%s", strings.ToLower(or(textAt(get, "scheme"), "http")), textAt(get, "host"),
			textAt(get, "port"), textAt(get, "path"))
	case probe["tcpSocket"] != nil:
		what = fmt.Sprintf("tcp-socket %s:%s", textAt(probe, "tcpSocket", "host"), textAt(probe, "tcpSocket", "port"))
	case probe["grpc"] != nil:
		what = fmt.Sprintf("grpc <pod>:%s %s", textAt(probe, "grpc", "port"), textAt(probe, "grpc", "service"))
	}
	return fmt.Sprintf("%s delay=%ds timeout=%ds period=%ds #success=%d #failure=%d", what, nested.Int(probe, "initialDelaySeconds"),
		nested.Int(probe, "timeoutSeconds"), nested.Int(probe, "periodSeconds"), nested.Int(probe, "successThreshold"), nested.Int(probe, "failureThreshold"))
}

// environmentFields returns a container's variables and mounts. It does not resolve references in variables.
func environmentFields(c any) (fields []field) {
	var sources []string
	for _, source := range nested.List(c, "envFrom") {
		line := textAt(source, "configMapRef", "name") + "  ConfigMap"
		if nested.Value(source, "secretRef") != nil {
			line = textAt(source, "secretRef", "name") + "  Secret"
		}
		if prefix := textAt(source, "prefix"); prefix != "" {
			line += " with prefix '" + prefix + "'"
		}
		sources = append(sources, line)
	}
	if len(sources) > 0 {
		fields = append(fields, text("Environment Variables from", sources...))
	}
	var variables []field
	for _, variable := range nested.List(c, "env") {
		value := strings.Split(textAt(variable, "value"), "\n")
		if from := nested.Map(variable, "valueFrom"); from != nil {
			value = []string{variableSource(from)}
		}
		variables = append(variables, text(textAt(variable, "name"), value...))
	}
	fields = append(fields, group("Environment", variables))
	var mounts []string
	for _, mount := range nested.List(c, "volumeMounts") {
		access := "rw"
		if nested.Bool(mount, "readOnly") {
			access = "ro"
		}
		if path := or(textAt(mount, "subPath"), textAt(mount, "subPathExpr")); path != "" {
			access += ",path=" + strconv.Quote(path)
		}
		mounts = append(mounts, textAt(mount, "mountPath")+" from "+textAt(mount, "name")+" ("+access+")")
	}
	slices.Sort(mounts)
	if len(mounts) == 0 {
		return append(fields, text("Mounts"))
	}
	return append(fields, field{label: "Mounts", fields: []field{{lines: mounts}}})
}

// variableSource formats valueFrom of a variable.
func variableSource(from map[string]any) string {
	for _, source := range []struct{ field, name string }{{"secretKeyRef", "secret"}, {"configMapKeyRef", "config map"}} {
		if ref := nested.Map(from, source.field); ref != nil {
			return fmt.Sprintf("<set to the key '%s' in %s '%s'>  Optional: %t", textAt(ref, "key"), source.name, textAt(ref, "name"), nested.Bool(ref, "optional"))
		}
	}
	if ref := nested.Map(from, "fieldRef"); ref != nil {
		return fmt.Sprintf(" (%s:%s)", textAt(ref, "apiVersion"), textAt(ref, "fieldPath"))
	}
	if ref := nested.Map(from, "resourceFieldRef"); ref != nil {
		return or(textAt(ref, "containerName"), "this container") + "'s " + textAt(ref, "resource")
	}
	return scalar(from)
}

// volumesField describes volumes by type and source fields.
func volumesField(volumes []any) field {
	var all []field
	for _, volume := range volumes {
		var below []field
		for name, source := range nested.Map(volume) {
			if name == "name" {
				continue
			}
			below = append(below, text("Type", title(name)))
			if fields, ok := source.(map[string]any); ok {
				below = append(below, treeFields(fields, 0)...)
			}
		}
		all = append(all, group(textAt(volume, "name"), below))
	}
	return group("Volumes", all)
}

// schedulingFields returns the node selectors and tolerations of a pod spec.
func schedulingFields(spec map[string]any) []field {
	var tolerations []string
	for _, t := range nested.List(spec, "tolerations") {
		line := textAt(t, "key")
		if value := textAt(t, "value"); value != "" {
			line += "=" + value
		}
		if effect := textAt(t, "effect"); effect != "" {
			line += ":" + effect
		}
		if operator := textAt(t, "operator"); operator == "Exists" {
			line += " op=Exists"
		}
		if seconds := textAt(t, "tolerationSeconds"); seconds != "" {
			line += " for " + seconds + "s"
		}
		tolerations = append(tolerations, strings.TrimSpace(line))
	}
	slices.Sort(tolerations)
	return []field{text("Node-Selectors", pairs(nested.Map(spec, "nodeSelector"), "=")...), text("Tolerations", tolerations...)}
}
