// Package builtingroup recognizes the API groups of Kubernetes' own kinds.
package builtingroup

import "strings"

// Is reports whether a group is built into the API server. The group of a CustomResourceDefinition has a dot. Groups of further
// projects of Kubernetes may end in k8s.io, too.
func Is(group string) bool {
	name, isKubernetes := strings.CutSuffix(group, ".k8s.io")
	switch name {
	case "admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
		"coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "networking", "node",
		"rbac.authorization", "resource", "scheduling", "storage", "storagemigration":
		return isKubernetes
	default:
		return !strings.Contains(group, ".")
	}
}
