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

// podFields describes a pod in kubectl's sections. Fields are taken from obj.
func podFields(obj, original *unstructured.Object, now time.Time) []field {
	pod := obj.Object
	fields := nameFields(obj)
	fields = append(fields, text("Priority", or(popText(pod, "spec", "priority"), "0")))
	fields = append(fields, optional("Priority Class Name", popText(pod, "spec", "priorityClassName"))...)
	fields = append(fields, optional("Runtime Class Name", popText(pod, "spec", "runtimeClassName"))...)
	fields = append(fields, text("Service Account", or(popText(pod, "spec", "serviceAccountName"), none)))
	node := popText(pod, "spec", "nodeName")
	if ip := popText(pod, "status", "hostIP"); node != "" && ip != "" {
		node += "/" + ip
	}
	fields = append(fields, text("Node", or(node, none)))
	if started := popText(pod, "status", "startTime"); started != "" {
		fields = append(fields, text("Start Time", timeText(started)))
	}
	fields = append(fields, labelFields(obj)...)
	fields = append(fields, podStatusFields(obj, now)...)
	fields = append(fields, optional("SeccompProfile", popText(pod, "spec", "securityContext", "seccompProfile", "type"))...)
	fields = append(fields, text("IP", popText(pod, "status", "podIP")))
	fields = append(fields, text("IPs", fieldOfEach(nested.List(pod, "status", "podIPs"), "ip")...))
	fields = append(fields, ownerFields(obj)...)
	for _, kind := range []struct{ label, spec, status string }{
		{"Init Containers", "initContainers", "initContainerStatuses"},
		{"Containers", "containers", "containerStatuses"},
		{"Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"},
	} {
		containers := nested.List(pod, "spec", kind.spec)
		if len(containers) > 0 {
			fields = append(fields, containersField(kind.label, containers, nested.List(pod, "status", kind.status), original))
		}
	}
	if conditions := nested.List(pod, "status", "conditions"); len(conditions) > 0 {
		fields = append(fields, conditionsField(obj, conditions, now))
	}
	fields = append(fields, volumesField(pod["spec"]))
	fields = append(fields, text("QoS Class", or(popText(pod, "status", "qosClass"), none)))
	return append(fields, schedulingFields(nested.Map(pod, "spec"))...)
}

// fieldOfEach returns a field of each element of a list.
func fieldOfEach(list []any, name string) (values []string) {
	for _, element := range list {
		values = append(values, popText(element, name))
	}
	return values
}

// podStatusFields returns a pod's phase with its reason.
func podStatusFields(obj *unstructured.Object, now time.Time) []field {
	status := or(popText(obj.Object, "status", "phase"), none)
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
	fields = append(fields, optional("Reason", popText(obj.Object, "status", "reason"))...)
	return append(fields, optional("Message", popText(obj.Object, "status", "message"))...)
}

// containersField describes containers of a pod, or without a pod those of a template, which have no states.
func containersField(label string, containers, statuses []any, pod *unstructured.Object) field {
	all := field{label: label}
	for _, c := range containers {
		name := popText(c, "name")
		var status any
		if i := slices.IndexFunc(statuses, func(s any) bool { return nested.Value(s, "name") == name }); i >= 0 {
			status = statuses[i]
			popText(status, "name")
		}
		all.fields = append(all.fields, field{label: name, fields: containerFields(c, status, pod)})
	}
	return all
}

func containerFields(c, status any, pod *unstructured.Object) (fields []field) {
	environment := environmentFields(c, pod) // before the limits are taken
	if pod != nil {
		fields = append(fields, text("Container ID", popText(status, "containerID")))
	}
	image := popText(c, "image")
	fields = append(fields, text("Image", image))
	if textAt(status, "image") == image {
		popText(status, "image")
	}
	if pod != nil {
		fields = append(fields, text("Image ID", popText(status, "imageID")))
	}
	fields = append(fields, portFields(nested.List(c, "ports"))...)
	for _, name := range []string{"command", "args"} {
		if list := popTexts(c, name); len(list) > 0 {
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
				below = append(below, text(name, popText(values, name)))
			}
			fields = append(fields, field{label: title(kind), fields: below})
		}
	}
	for _, kind := range []string{"liveness", "readiness", "startup"} {
		if probe := nested.Map(c, kind+"Probe"); probe != nil {
			fields = append(fields, text(title(kind), probeText(probe)))
		}
	}
	return append(fields, environment...)
}

// commandLines returns the lines of all arguments.
func commandLines(list []string) (lines []string) {
	for _, argument := range list {
		lines = append(lines, strings.Split(argument, "\n")...)
	}
	return lines
}

// portFields returns the container ports and host ports of a container.
func portFields(ports []any) []field {
	var inside, outside []string
	for _, p := range ports {
		protocol := or(popText(p, "protocol"), "TCP")
		port := popText(p, "containerPort") + "/" + protocol
		if name := popText(p, "name"); name != "" {
			port += " (" + name + ")"
		}
		inside = append(inside, port)
		outside = append(outside, strconv.FormatInt(popInt(p, "hostPort"), 10)+"/"+protocol)
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
	} else {
		pop(status, "lastState")
	}
	ready := "False"
	if popBool(status, "ready") {
		ready = "True"
	}
	return append(fields, text("Ready", ready), text("Restart Count", strconv.FormatInt(popInt(status, "restartCount"), 10)))
}

func stateField(label string, state map[string]any) []field {
	fields := []field{text(label, "Waiting")}
	for name, details := range state {
		fields = []field{text(label, title(name))}
		var below []field
		below = append(below, optional(indent+"Reason", popText(details, "reason"))...)
		below = append(below, optional(indent+"Message", popText(details, "message"))...)
		if name == "terminated" {
			below = append(below, text(indent+"Exit Code", strconv.FormatInt(popInt(details, "exitCode"), 10)))
			below = append(below, optional(indent+"Signal", popText(details, "signal"))...)
		}
		below = append(below, optional(indent+"Started", timeText(popText(details, "startedAt")))...)
		below = append(below, optional(indent+"Finished", timeText(popText(details, "finishedAt")))...)
		fields = append(fields, below...)
	}
	return fields
}

// probeText formats a probe in a line.
func probeText(probe map[string]any) string {
	what := "unknown"
	switch {
	case probe["exec"] != nil:
		what = fmt.Sprintf("exec %v", popTexts(probe, "exec", "command"))
	case probe["httpGet"] != nil:
		get := probe["httpGet"]
		what = fmt.Sprintf("http-get %s://%s:%s%s", strings.ToLower(or(popText(get, "scheme"), "http")), popText(get, "host"),
			popText(get, "port"), popText(get, "path"))
	case probe["tcpSocket"] != nil:
		what = fmt.Sprintf("tcp-socket %s:%s", popText(probe, "tcpSocket", "host"), popText(probe, "tcpSocket", "port"))
	case probe["grpc"] != nil:
		what = fmt.Sprintf("grpc <pod>:%s %s", popText(probe, "grpc", "port"), popText(probe, "grpc", "service"))
	}
	return fmt.Sprintf("%s delay=%ds timeout=%ds period=%ds successThreshold=%d failureThreshold=%d", what, popInt(probe, "initialDelaySeconds"),
		popInt(probe, "timeoutSeconds"), popInt(probe, "periodSeconds"), popInt(probe, "successThreshold"), popInt(probe, "failureThreshold"))
}

// volumesField describes volumes by type and source fields.
func volumesField(spec any) field {
	var all []field
	volumes, _ := pop(spec, "volumes").([]any)
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
		line := popText(t, "key")
		if value := popText(t, "value"); value != "" {
			line += "=" + value
		}
		if effect := popText(t, "effect"); effect != "" {
			line += ":" + effect
		}
		if operator := popText(t, "operator"); operator != "" && operator != "Equal" {
			line += " op=" + operator
		}
		if seconds := popText(t, "tolerationSeconds"); seconds != "" {
			line += " for " + seconds + "s"
		}
		tolerations = append(tolerations, strings.TrimSpace(line))
	}
	slices.Sort(tolerations)
	return []field{text("Node-Selectors", popPairs(spec, "=", "nodeSelector")...), text("Tolerations", tolerations...)}
}
