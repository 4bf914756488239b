package inspect

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/inventory/relation"
)

func TestNamesNamespace_BuiltIn(t *testing.T) {
	fields := map[string]bool{}
	for _, r := range relation.BuiltIn() {
		if namesNamespace(r) {
			fields[r.From.Kind+" "+r.Field] = true
		}
	}
	assert.Equal(t, map[string]bool{
		"RoleBinding subjects[*]": true, "ClusterRoleBinding subjects[*]": true,
		"Gateway spec.listeners[*].tls.certificateRefs[*]": true,
		"HTTPRoute spec.rules[*].backendRefs[*]":           true, "HTTPRoute spec.parentRefs[*]": true,
		"GRPCRoute spec.rules[*].backendRefs[*]": true, "GRPCRoute spec.parentRefs[*]": true,
	}, fields)
}
