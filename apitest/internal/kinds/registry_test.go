package kinds

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// widgets returns a CustomResourceDefinition with the versions. The first version is stored.
func widgets(versions ...string) map[string]any {
	var list []any
	for i, v := range versions {
		list = append(list, map[string]any{
			"name": v, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object",
				"properties": map[string]any{"spec": map[string]any{
					"type": "object", "description": "What the widget should be.",
					"properties": map[string]any{"size": map[string]any{"type": "integer"}},
				}},
			}},
			"subresources": map[string]any{
				"status": map[string]any{},
				"scale":  map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
			},
			"additionalPrinterColumns": []any{map[string]any{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": int64(1)}},
			"selectableFields":         []any{map[string]any{"jsonPath": ".spec.size"}},
		})
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "versions": list,
			"names": map[string]any{"plural": "widgets", "kind": "Widget", "shortNames": []any{"wd"}},
		},
	}
}

func (r *Registry) getIfChanged(t *testing.T, path, etag string) int {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, path, nil)
	req.Header.Set("Accept", aggregatedType)
	req.Header.Set("If-None-Match", etag)
	recorder := httptest.NewRecorder()
	r.ServeHTTP(recorder, req)
	return recorder.Code
}

func TestRegistry_Lookup(t *testing.T) {
	registry := New(nil)
	pods := registry.Lookup("", "v1", "pods")
	require.NotNil(t, pods)
	assert.Equal(t, "Pod", pods.Kind)
	assert.Equal(t, "PodList", pods.ListKind)
	assert.True(t, pods.Namespaced && pods.HasVerb("list"))
	assert.Equal(t, "Eviction", pods.Subresources["eviction"].Kind)
	assert.Contains(t, pods.SelectableFields, "spec.nodeName")
	assert.Same(t, pods, New(nil).Lookup("", "v1", "pods"), "built-in resources are shared")
	assert.Same(t, pods, registry.OfKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}))
	assert.Nil(t, registry.Lookup("", "v1", "widgets"))

	scalers := registry.Versions("autoscaling", "horizontalpodautoscalers")
	require.Len(t, scalers, 2)
	assert.Equal(t, "v2", scalers[0].Version)
	assert.Equal(t, "v2", scalers[1].StorageVersion)
}

func TestRegistry_SetDefinition(t *testing.T) {
	registry := New(nil)
	require.NoError(t, registry.SetDefinition(widgets("v1", "v1beta1", "v2")))
	versions := registry.Versions("example.com", "widgets")
	require.Len(t, versions, 3)
	assert.Equal(t, []string{"v2", "v1", "v1beta1"}, []string{versions[0].Version, versions[1].Version, versions[2].Version})
	one := versions[2]
	assert.Equal(t, "v1", one.StorageVersion)
	assert.Equal(t, "WidgetList", one.ListKind)
	assert.Equal(t, "widget", one.Singular)
	assert.Equal(t, ".spec.replicas", one.Subresources["scale"].Scale.SpecReplicas)
	assert.Equal(t, []string{"spec.size"}, one.SelectableFields)
	columns, err := one.Columns()
	require.NoError(t, err)
	assert.Equal(t, []Column{{Name: "Size", Type: "integer", JSONPath: ".spec.size", Priority: 1}}, columns)
	assert.Same(t, one, registry.OfKind(schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Widget"}))

	require.NoError(t, registry.SetDefinition(widgets("v2")))
	assert.Len(t, registry.Versions("example.com", "widgets"), 1)
	registry.RemoveDefinition("widgets.example.com")
	assert.Nil(t, registry.Lookup("example.com", "v2", "widgets"))
	assert.Nil(t, New(nil).Lookup("example.com", "v2", "widgets"))
}

func TestRegistry_SetDefinitionRejects(t *testing.T) {
	for name, change := range map[string]func(definition, spec map[string]any){
		"no kind":      func(_, spec map[string]any) { delete(spec["names"].(map[string]any), "kind") },
		"another name": func(d, _ map[string]any) { d["metadata"].(map[string]any)["name"] = "gadgets.example.com" },
		"no storage":   func(_, spec map[string]any) { spec["versions"] = []any{} },
		"built-in kind": func(d, spec map[string]any) {
			spec["group"] = "apps"
			spec["names"].(map[string]any)["plural"] = "deployments"
			d["metadata"].(map[string]any)["name"] = "deployments.apps"
		},
	} {
		t.Run(name, func(t *testing.T) {
			definition := widgets("v1")
			change(definition, definition["spec"].(map[string]any))
			registry := New(nil)
			require.Error(t, registry.SetDefinition(definition))
			assert.Len(t, registry.Resources(), len(New(nil).Resources()))
		})
	}
}
