package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/builtin"
)

// TestWarnings_Update has updates. Creations are compared with a real server by the scenarios of package write.
func TestWarnings_Update(t *testing.T) {
	definition := func(format string) map[string]any {
		return decoded(t, `{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string, format: `+format+`},
  b: {allOf: [{type: string, format: old}]}}}}}]}}`)
	}
	definitions := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	assert.Equal(t, []string{`unrecognized format "new"`}, builtin.Warnings(definitions, definition("new"), definition("date")))
	assert.Empty(t, builtin.Warnings(definitions, definition("date"), definition("date")))

	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	const template = `template: {spec: {containers: [{name: c, env: [{name: A, value: a}, {name: A, value: b}]}]}}}}`
	before := decoded(t, `{spec: {replicas: 1, `+template)
	assert.Empty(t, builtin.Warnings(deployments, before, before))
	assert.Equal(t, []string{`spec.template.spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`},
		builtin.Warnings(deployments, decoded(t, `{spec: {replicas: 2, `+template), before))
}
