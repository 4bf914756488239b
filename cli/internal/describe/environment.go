package describe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// environmentFields returns a container's variables and mounts. References to fields of the pod are resolved, and references to limits.
func environmentFields(c any, pod *unstructured.Object) (fields []field) {
	var sources []string
	for _, source := range nested.List(c, "envFrom") {
		line := popText(source, "configMapRef", "name") + "  ConfigMap"
		if nested.Value(source, "secretRef") != nil {
			line = popText(source, "secretRef", "name") + "  Secret"
		}
		if prefix := popText(source, "prefix"); prefix != "" {
			line += " with prefix '" + prefix + "'"
		}
		sources = append(sources, line)
	}
	if len(sources) > 0 {
		fields = append(fields, text("Environment Variables from", sources...))
	}
	var variables []field
	for _, variable := range nested.List(c, "env") {
		value := strings.Split(popText(variable, "value"), "\n")
		if from := nested.Map(variable, "valueFrom"); from != nil {
			value = []string{variableSource(from, c, pod)}
		}
		variables = append(variables, text(popText(variable, "name"), value...))
	}
	fields = append(fields, group("Environment", variables))
	var mounts []string
	for _, mount := range nested.List(c, "volumeMounts") {
		access := "rw"
		if popBool(mount, "readOnly") {
			access = "ro"
		}
		if path := or(popText(mount, "subPath"), popText(mount, "subPathExpr")); path != "" {
			access += ",path=" + strconv.Quote(path)
		}
		mounts = append(mounts, popText(mount, "mountPath")+" from "+popText(mount, "name")+" ("+access+")")
	}
	slices.Sort(mounts)
	if len(mounts) == 0 {
		return append(fields, text("Mounts"))
	}
	return append(fields, field{label: "Mounts", fields: []field{{lines: mounts}}})
}

// variableSource formats valueFrom of a variable.
func variableSource(from map[string]any, container any, pod *unstructured.Object) string {
	for _, source := range []struct{ field, name string }{{"secretKeyRef", "secret"}, {"configMapKeyRef", "config map"}} {
		if ref := nested.Map(from, source.field); ref != nil {
			return fmt.Sprintf("<set to the key '%s' in %s '%s'>  Optional: %t", popText(ref, "key"), source.name, popText(ref, "name"), popBool(ref, "optional"))
		}
	}
	if ref := nested.Map(from, "fieldRef"); ref != nil {
		path := popText(ref, "fieldPath")
		return strings.TrimSpace(podField(pod, path) + " (" + popText(ref, "apiVersion") + ":" + path + ")")
	}
	if ref := nested.Map(from, "resourceFieldRef"); ref != nil {
		return resourceValue(ref, container, pod)
	}
	return scalar(from)
}

// podField returns the value of a field of a pod, such as metadata.labels['app'], and "" without a pod.
func podField(pod *unstructured.Object, path string) string {
	if pod == nil {
		return ""
	}
	path, key, hasKey := strings.Cut(strings.TrimSuffix(path, "']"), "['")
	steps := strings.Split(path, ".")
	if hasKey {
		steps = append(steps, key)
	}
	return textAt(pod.Object, steps...)
}

// resourceValue returns a limit or request of the container, or of the container with the name in ref, in units of the divisor. A missing
// limit is that of the node.
func resourceValue(ref map[string]any, container any, pod *unstructured.Object) string {
	name := popText(ref, "resource")
	text := " (" + name + ")"
	if of := popText(ref, "containerName"); of != "" && pod != nil {
		text = " (" + name + " of " + of + ")"
		for _, c := range slices.Concat(nested.List(pod.Object, "spec", "containers"), nested.List(pod.Object, "spec", "initContainers")) {
			if textAt(c, "name") == of {
				container = c
			}
		}
	}
	kind, resourceName, _ := strings.Cut(name, ".")
	value := quantity(nested.Value(container, "resources", kind, resourceName))
	if value.IsZero() && kind == "limits" {
		return "node allocatable" + text
	}
	divisor := quantity(pop(ref, "divisor"))
	if divisor.IsZero() {
		divisor = *resource.NewQuantity(1, resource.DecimalSI)
	}
	if resourceName == "cpu" {
		return strconv.FormatInt(ceil(value.MilliValue(), divisor.MilliValue()), 10) + text
	}
	return strconv.FormatInt(ceil(value.Value(), divisor.Value()), 10) + text
}

func ceil(value, divisor int64) int64 { return (value + divisor - 1) / max(divisor, 1) }
