package builtin

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// DeprecationWarning returns the API server's warning for each request to a deprecated resource, or "".
func DeprecationWarning(resource schema.GroupResource) string {
	switch resource.String() {
	case "endpoints":
		return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
	case "componentstatuses":
		return "v1 ComponentStatus is deprecated in v1.19+"
	}
	return ""
}

// Warnings returns the API server's warnings for a valid object. old is nil for a creation. The server has more warnings for pods.
func Warnings(resource schema.GroupResource, obj, old map[string]any) []string {
	switch name := resource.String(); name {
	case "services":
		return serviceWarnings(obj)
	case "ingresses.networking.k8s.io":
		if old == nil {
			return ingressWarnings(obj)
		}
	case "customresourcedefinitions.apiextensions.k8s.io":
		known := structural.UnrecognizedFormats(old)
		return slices.DeleteFunc(structural.UnrecognizedFormats(obj), func(text string) bool { return slices.Contains(known, text) })
	case "pods":
		if old == nil {
			return envWarnings(field.NewPath("spec"), nested.Map(obj, "spec"))
		}
	default:
		path := podSpecPath(name)
		if path != nil && (old == nil || !reflect.DeepEqual(obj["spec"], old["spec"])) {
			return envWarnings(field.NewPath(path[0], path[1:]...), nested.Map(obj, path...))
		}
	}
	return nil
}

// podSpecPath returns the path of the pod spec of a workload, nil for other resources.
func podSpecPath(resource string) []string {
	switch resource {
	case "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "replicationcontrollers":
		return []string{"spec", "template", "spec"}
	case "cronjobs.batch":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "podtemplates":
		return []string{"template", "spec"}
	}
	return nil
}

// envWarnings returns a warning for each environment variable that replaces an earlier one of its container.
func envWarnings(at *field.Path, spec object) (warnings []string) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, container := range nested.Maps(spec, list) {
			names := map[string]bool{}
			for j, env := range nested.Maps(container, "env") {
				name := nested.String(env, "name")
				value := nested.String(env, "value")
				reference := "$(" + name + ")"
				extends := env["valueFrom"] == nil && value != reference && strings.Contains(value, reference)
				if names[name] && !extends {
					warnings = append(warnings, fmt.Sprintf("%s: hides previous definition of %q, which may be dropped when using apply",
						at.Child(list).Index(i).Child("env").Index(j), name))
				}
				names[name] = true
			}
		}
	}
	return warnings
}

// ingressWarnings returns the warning for the deprecated annotation of a new ingress.
func ingressWarnings(ingress object) []string {
	const annotation = "kubernetes.io/ingress.class"
	if _, annotated := nested.Map(ingress, "metadata", "annotations")[annotation]; !annotated || nested.Map(ingress, "spec")["ingressClassName"] != nil {
		return nil
	}
	return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", annotation)}
}
