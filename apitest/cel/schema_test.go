package cel_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/apitest/cel"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const ruledDefinition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ruled.schema.example.com"},
"spec": {"group": "schema.example.com", "scope": "Namespaced", "names": {"plural": "ruled", "singular": "ruled", "kind": "Ruled", "listKind": "RuledList"},
"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
  "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('a')", "message": "the name begins with a"}],
  "properties": {"spec": {"type": "object", "properties": {
    "min": {"type": "integer"}, "max": {"type": "integer", "default": 10},
    "items": {"type": "array", "maxItems": 5, "items": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}},
      "x-kubernetes-validations": [{"rule": "self.name != 'x'", "messageExpression": "'not ' + self.name", "fieldPath": ".name"}]}},
    "resource": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
      "x-kubernetes-validations": [{"rule": "self.kind == 'Pod'"}]}},
    "x-kubernetes-validations": [{"rule": "!has(self.min) || self.min <= self.max", "message": "min is at most max"}]}}}}}]}}`

// TestRules_ValidateSchema compares the verdicts of schema.Validate with those of the server, by the published schema and by the
// definition.
func TestRules_ValidateSchema(t *testing.T) {
	sandbox := compare.Sandbox(t)
	definition, err := unstructured.Decode([]byte(ruledDefinition))
	require.NoError(t, err)
	sandbox.Requests.Write(t, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", nil, definition.Object)
	t.Cleanup(func() {
		sandbox.Requests.Delete(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ruled.schema.example.com")
	})
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	gvk := kschema.GroupVersionKind{Group: "schema.example.com", Version: "v1", Kind: "Ruled"}
	online := schema.New(conn, nil)
	require.Eventually(t, func() bool { _, err := online.Kind(t.Context(), gvk); return err == nil }, time.Minute, 100*time.Millisecond)
	offline, err := schema.NewOffline("")
	require.NoError(t, err)
	offline, err = offline.WithDefinitions(definition)
	require.NoError(t, err)
	path := "/apis/schema.example.com/v1/namespaces/" + sandbox.Namespace + "/ruled"
	for _, text := range []string{
		`{"metadata": {"name": "a"}, "spec": {"min": 1}}`,
		`{"metadata": {"name": "b"}, "spec": {"min": 1}}`,
		`{"metadata": {"name": "a"}, "spec": {"min": 11}}`,
		`{"metadata": {"name": "a"}, "spec": {"min": 11, "max": 12}}`,
		`{"metadata": {"name": "a"}, "spec": {"items": [{"name": "a"}, {"name": "x"}]}}`,
		`{"metadata": {"name": "a"}, "spec": {"items": [{}]}}`,
		`{"metadata": {"name": "a"}, "spec": {"min": "x", "items": [{"name": "x"}]}}`,
		`{"metadata": {"name": "a"}, "spec": {"resource": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}}}`,
		`{"metadata": {"name": "a"}, "spec": {"resource": {"apiVersion": "v1", "kind": "Service"}}}`,
	} {
		var obj map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &obj))
		obj["apiVersion"] = "schema.example.com/v1"
		obj["kind"] = "Ruled"
		want := sandbox.Requests.Write(t, http.MethodPost, path, url.Values{"dryRun": {"All"}, "fieldValidation": {"Strict"}}, obj)
		for name, client := range map[string]*schema.Client{"published": online, "definition": offline} {
			s, err := client.Kind(t.Context(), gvk)
			require.NoError(t, err)
			result := s.Validate(t.Context(), &unstructured.Object{Object: obj}, &schema.ValidateOptions{Rules: cel.Rules{}})
			assert.Equal(t, want.Object != nil, result.Err() == nil, "%s %s: %s, but %v", name, text, fmt.Sprint(want), result.Err())
			for _, problem := range result.Problems {
				if problem.Keyword == "x-kubernetes-validations" {
					assert.Contains(t, fmt.Sprint(want), problem.Message, "%s %s", name, text)
					assert.Contains(t, fmt.Sprint(want), problem.Field(), "%s %s", name, text)
				}
			}
			isEvaluated := !slices.ContainsFunc(result.Problems, func(problem schema.Problem) bool { return problem.Keyword == "type" })
			assert.Equal(t, isEvaluated, len(result.NotChecked) == 0, "%s %s: %v", name, text, result.NotChecked)
		}
	}
}
