package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
)

const (
	notValidated      = "apitest: not validated: "
	podSecurityPrefix = "pod-security.kubernetes.io/"
)

// warn adds a warning for each missing plugin with an effect on the request.
func (r *pluginRequest) warn() {
	for _, warning := range []struct {
		applies bool
		text    string
	}{
		{r.isCounted(), fmt.Sprintf("the resource quotas of namespace %q", r.namespace)},
		{r.hasPodSecurity(), fmt.Sprintf("the pod security level of namespace %q", r.namespace)},
		{r.hasServiceAccounts(), "the pod's service account, whose token is not mounted"},
		{r.isOf("nodes") && r.OldObject == nil && r.Subresource == "", "the node gets no taint node.kubernetes.io/not-ready"},
		{r.isOf("pods") && r.Subresource == "resize", "whether the pod's node has the capacity and the features for it"},
	} {
		if warning.applies {
			r.Warn(notValidated + warning.text)
		}
	}
}

// isCounted reports whether a resource quota of the namespace counts the object or its requests.
func (r *pluginRequest) isCounted() bool {
	if r.namespace == "" || r.Subresource != "" && r.Subresource != "resize" {
		return false
	}
	for _, quota := range r.list("", "resourcequotas", r.namespace) {
		for name := range nested.Map(quota, "spec", "hard") {
			if r.isUsedBy(name) {
				return true
			}
		}
	}
	return false
}

// isUsedBy reports whether the request increases the usage of a quota's resource. Updates increase sizes, not counts.
func (r *pluginRequest) isUsedBy(resource string) bool {
	class, _, ofClass := strings.Cut(resource, ".storageclass.storage.k8s.io/")
	switch {
	case resource == "count/"+r.resource.String() || resource == r.resource.Resource && r.resource.Group == "":
		return r.OldObject == nil
	case strings.HasPrefix(resource, "count/"):
		return false
	case strings.HasPrefix(resource, "services."):
		return r.isOf("services")
	case ofClass || resource == "requests.storage":
		return class != "" && r.isOf("persistentvolumeclaims")
	case resource == "cpu" || resource == "memory" || resource == "ephemeral-storage",
		strings.HasPrefix(resource, "requests."), strings.HasPrefix(resource, "limits."), strings.HasPrefix(resource, "hugepages-"):
		return r.isOf("pods")
	}
	return false
}

// hasPodSecurity reports whether the request is for pods, or a workload with a pod template, in a namespace with a pod security
// level.
func (r *pluginRequest) hasPodSecurity() bool {
	if r.namespace == "" {
		return false
	}
	switch r.resource.String() {
	case "pods":
		if r.Subresource != "" && r.Subresource != "ephemeralcontainers" && r.Subresource != "resize" {
			return false
		}
	case "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch",
		"replicationcontrollers", "podtemplates":
		if r.Subresource != "" {
			return false
		}
	default:
		return false
	}
	labels := nested.Map(r.find("", "namespaces", r.namespace), "metadata", "labels")
	modes := []string{"warn", "audit"}
	if r.isOf("pods") {
		modes = append(modes, "enforce")
	}
	for _, mode := range modes {
		if level := nested.String(labels, podSecurityPrefix+mode); level != "" && level != "privileged" {
			return true
		}
	}
	return false
}

// hasServiceAccounts reports whether the request is for a new pod in a namespace with the default service account. Without it, no
// controller manager is running, and the plugin is assumed to be disabled.
func (r *pluginRequest) hasServiceAccounts() bool {
	return r.isOf("pods") && r.OldObject == nil && r.Subresource == "" &&
		slices.ContainsFunc(r.list("", "serviceaccounts", r.namespace), func(account map[string]any) bool {
			return nested.String(account, "metadata", "name") == "default"
		})
}
