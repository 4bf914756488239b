package structural_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/internal/structural"
)

const exampleSchema = `
type: object
properties:
  spec:
    type: object
    required: [name]
    properties:
      name: {type: string, pattern: '^[a-z]+$'}
      size: {type: integer, default: 3}
      note: {type: string, nullable: true, default: none}
      port: {x-kubernetes-int-or-string: true}
      labels: {type: object, additionalProperties: {type: string}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      inner: {type: object, x-kubernetes-embedded-resource: true, properties: {kind: {type: string}, size: {type: integer, default: 1}}}
`

func TestSchema_PruneAndDefault(t *testing.T) {
	s := structural.Compile(decoded(t, exampleSchema), nil)
	obj := decoded(t, `{apiVersion: v1, kind: X, metadata: {name: a, extra: 1}, top: 1, spec: {name: a, size: null, note: null, port: null, x: {y: 1},
  labels: {a: b}, free: {x: {y: 1}}, inner: {apiVersion: v1, kind: Inner, metadata: {name: b, extra: 1}, z: 1}}}`)
	unknown, err := s.Prune(obj)
	require.NoError(t, err)
	assert.Equal(t, []string{"metadata.extra", "spec.inner.z", "spec.x", "top", "spec.inner.metadata.extra"}, unknown)
	s.Default(obj)
	assert.Equal(t, decoded(t, `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {name: a, size: 3, note: null,
  labels: {a: b}, free: {x: {y: 1}}, inner: {apiVersion: v1, kind: Inner, size: 1, metadata: {name: b}}}}`), obj)
}

func TestSchema_Validate(t *testing.T) {
	s := structural.Compile(decoded(t, exampleSchema), nil)
	for text, want := range map[string][]string{
		`{spec: {name: a, port: 80}}`:                     nil,
		`{spec: {name: A}}`:                               {`spec.name: Invalid value: "A": spec.name in body should match '^[a-z]+$'`},
		`{spec: {port: true}}`:                            {`spec.name: Required value`, `spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"`},
		`{spec: {name: a, inner: {apiVersion: v1}}}`:      {`spec.inner.kind: Required value`},
		`{spec: {name: a, labels: {a: 1}}}`:               {`spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"`},
		`{spec: {name: a, size: text, note: 5}}`:          {`spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`, `spec.note: Invalid value: "integer": spec.note in body must be of type string: "integer"`},
		`{spec: {name: a, note: null, labels: {a: b}}}`:   nil,
		`{spec: {name: a, free: {anything: [1, a, {}]}}}`: nil,
	} {
		var got []string
		for _, err := range s.Validate(decoded(t, text), nil) {
			got = append(got, err.Error())
		}
		assert.ElementsMatch(t, want, got, text)
	}
}

func TestSchema_PruneStored(t *testing.T) {
	s := structural.Compile(decoded(t, exampleSchema), nil)
	for given, want := range map[string]string{
		`{top: 1, spec: {name: a, port: null, note: null, size: null, x: {y: 1}}}`:                      `{spec: {name: a, note: null, size: null}}`,
		`{spec: {inner: {apiVersion: 1, kind: X, size: 2, z: 1, metadata: {name: b, extra: 1}}}}`:       `{spec: {inner: {kind: X, size: 2, metadata: {name: b}}}}`,
		`{spec: {inner: {kind: X, metadata: {name: 5, labels: {a: 1}, annotations: {b: c}}}}}`:          `{spec: {inner: {kind: X, metadata: {annotations: {b: c}}}}}`,
		`{spec: {inner: {kind: X, metadata: text}}}`:                                                    `{spec: {inner: {kind: X, metadata: text}}}`,
		`{apiVersion: v1, kind: X, metadata: {name: a, extra: 1}, spec: {free: {x: null}, labels: {}}}`: `{apiVersion: v1, kind: X, metadata: {name: a, extra: 1}, spec: {free: {x: null}, labels: {}}}`,
	} {
		obj := decoded(t, given)
		s.PruneStored(obj)
		assert.Equal(t, decoded(t, want), obj, given)
	}
}

func TestValidateDefinition_WithoutSpec(t *testing.T) {
	definition := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "a.b.c"}}
	errs := structural.ValidateDefinition(definition, nil)
	assert.Contains(t, errs.ToAggregate().Error(), "spec.group: Required value")
}
