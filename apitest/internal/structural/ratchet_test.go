package structural_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/structural"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
)

const ratchetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ratchets.structural.example.com}
spec:
  group: structural.example.com
  scope: Cluster
  names: {plural: ratchets, kind: Ratchet}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {}}}}}
`

// looseSpec permits what strictSpec does not.
const looseSpec = `{type: object, x-kubernetes-preserve-unknown-fields: true}`

const strictSpec = `
type: object
required: [name]
properties:
  name: {type: string, maxLength: 3}
  other: {type: string, enum: [a, b]}
  set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
  plain: {type: array, items: {type: integer, minimum: 1}}
  map:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [key]
    items: {type: object, required: [key], properties: {key: {type: string}, size: {type: integer, minimum: 1}, note: {type: string}}}
`

func TestSchema_RatchetingAsRealServer(t *testing.T) {
	server := compare.Sandbox(t).Requests
	definition := decoded(t, ratchetDefinition)
	strict := decoded(t, strictSpec)
	setSpec(definition, decoded(t, looseSpec))
	require.NotNil(t, server.Write(t, http.MethodPost, definitionsPath, nil, definition).Object)
	const path, name = "/apis/structural.example.com/v1/ratchets", "/ratchets.structural.example.com"
	t.Cleanup(func() { server.Delete(t, definitionsPath+name) })
	waitServed(t, server, path)
	old := decoded(t, `{apiVersion: structural.example.com/v1, kind: Ratchet, metadata: {name: one}, spec: {
  name: long-name, other: c, set: [a, a], plain: [0, 1], map: [{key: x, size: 0}, {key: y, size: 0}]}}`)
	odd := decoded(t, `{apiVersion: structural.example.com/v1, kind: Ratchet, metadata: {name: odd}, spec: {name: ok, map: [{key: {a: b}}]}}`)
	for _, obj := range []map[string]any{old, odd} {
		require.NotNil(t, server.Write(t, http.MethodPost, path, nil, obj).Object)
	}
	stored := server.Write(t, http.MethodGet, definitionsPath+name, nil, nil).Object
	setSpec(stored, strict)
	require.NotNil(t, server.Write(t, http.MethodPut, definitionsPath+name, nil, stored).Object)
	require.Eventually(t, func() bool { // until the new schema is in force
		fresh := decoded(t, `{apiVersion: structural.example.com/v1, kind: Ratchet, metadata: {name: two}, spec: {name: long-name}}`)
		return server.Write(t, http.MethodPost, path, map[string][]string{"dryRun": {"All"}}, fresh).Object == nil
	}, time.Minute, 50*time.Millisecond)
	compiled := structural.Compile(map[string]any{"type": "object", "properties": map[string]any{"spec": strict}}, nil)
	check := func(old map[string]any, patch string) {
		name := old["metadata"].(map[string]any)["name"].(string)
		want := server.Write(t, http.MethodPatch, path+"/"+name, map[string][]string{"dryRun": {"All"}}, decoded(t, patch))
		obj := merge(runtime.DeepCopyJSON(old), decoded(t, patch)).(map[string]any)
		got := realserver.Response{Object: want.Object, Warnings: want.Warnings}
		if errs := compiled.Validate(obj, old); len(errs) > 0 {
			got = realserver.ResponseOf(t, apierrors.NewInvalid(schema.GroupKind{}, name, errs))
		}
		assert.Empty(t, realserver.Differences(want, got), "%s: %s", name, patch)
	}
	for _, patch := range []string{
		`{metadata: {labels: {a: b}}}`, `{spec: {name: longer-name}}`, `{spec: {name: ok}}`, `{spec: {other: d}}`, `{spec: {name: null}}`,
		`{spec: {set: [a, a, b]}}`, `{spec: {plain: [0, 2]}}`, `{spec: {map: [{key: y, size: 0}, {key: x, size: 0}]}}`,
		`{spec: {map: [{key: x, size: 0, note: n}, {key: y, size: -1}]}}`, `{spec: {map: [{key: x, size: 0}, {key: x, size: 1}]}}`,
		`{spec: {map: [{key: z, size: 0}]}}`,
	} {
		check(old, patch)
	}
	for _, patch := range []string{`{metadata: {labels: {a: b}}}`, `{spec: {name: new}}`, `{spec: {map: [{key: a}]}}`} {
		check(odd, patch) // an item whose key is no scalar has no old value
	}
}

func setSpec(definition, spec map[string]any) {
	version := definition["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	root := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	root["properties"].(map[string]any)["spec"] = spec
}

// merge applies a merge patch.
func merge(target, patch any) any {
	fields, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	obj, _ := target.(map[string]any)
	if obj == nil {
		obj = map[string]any{}
	}
	for name, value := range fields {
		if value == nil {
			delete(obj, name)
		} else {
			obj[name] = merge(obj[name], value)
		}
	}
	return obj
}

func decoded(t *testing.T, text string) map[string]any {
	content, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var obj map[string]any
	require.NoError(t, utiljson.Unmarshal(content, &obj))
	return obj
}
