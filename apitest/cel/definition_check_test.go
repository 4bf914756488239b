package cel_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/cel"
	"github.com/anykind/anykind/apitest/definitioncheck"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

const dialDefinition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "dials.GROUP"}, "spec": {
	"group": "GROUP", "scope": "Namespaced", "names": {"plural": "dials", "singular": "dial", "kind": "Dial", "listKind": "DialList"}, "versions": [
		{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
			"type": "object", "properties": {"size": {"type": "integer"}, "limit": {"type": "integer"DEFAULT}}RULES}}}}}
	]}}`

// TestRules_DefinitionCheckAsRealServer checks a definition with new rules and compares the report with the server's behavior under
// this definition. Updates without a change tolerate broken rules.
func TestRules_DefinitionCheckAsRealServer(t *testing.T) {
	c := client.Connect(t, "admin")
	group := fmt.Sprintf("g%d.rules.example.com", rand.Uint32())
	definitions := client.Resource(t, c, "customresourcedefinitions")
	_, err := definitions.Create(t.Context(), dial(t, group, "", ""), nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, definitions, "dials."+group)
	_, err = definitions.Wait(t.Context(), "dials."+group, dynamic.Condition("Established"))
	require.NoError(t, err)
	dials := client.Resource(t, c, "dials."+group).Namespace(client.NewNamespace(t, c))
	for name, spec := range map[string]map[string]any{
		"valid": {"size": int64(1), "limit": int64(9)}, "even": {"size": int64(2), "limit": int64(9)}, "large": {"size": int64(7)},
	} {
		obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}}
		require.EventuallyWithT(t, func(ct *assert.CollectT) {
			_, err := dials.Create(t.Context(), obj, nil)
			assert.NoError(ct, err)
		}, time.Minute, 50*time.Millisecond)
	}

	proposed := dial(t, group, `, "default": 5`, `, "x-kubernetes-validations": [
		{"rule": "self.size % 2 == 1", "message": "size must be odd"}, {"rule": "self.size <= self.limit", "message": "size exceeds limit"}]`)
	report, err := definitioncheck.Check(t.Context(), c, proposed, &definitioncheck.Options{Rules: cel.Rules{}})
	require.NoError(t, err)
	assert.Equal(t, []string{"admission webhooks, admission policies and quotas"}, report.NotChecked)
	found := map[string]int{}
	for _, f := range report.Findings {
		for _, key := range f.Examples {
			found[fmt.Sprintf("%s %s %s", key.Name, f.Type, f.Message)]++
		}
	}
	assert.Equal(t, map[string]int{
		"large FieldDefaulted 5": 1, "even Invalid Invalid value: size must be odd": 1, "large Invalid Invalid value: size exceeds limit": 1,
	}, found)

	live, err := definitions.Get(t.Context(), "dials."+group, nil)
	require.NoError(t, err)
	proposed.SetResourceVersion(live.GetResourceVersion())
	_, err = definitions.Update(t.Context(), proposed, nil)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		obj, err := dials.Get(t.Context(), "large", nil)
		require.NoError(ct, err)
		limit, _, _ := unstructured.Get[int64](obj, "spec", "limit")
		assert.Equal(ct, int64(5), limit)
	}, time.Minute, 50*time.Millisecond)
	for name, message := range map[string]string{"valid": "", "even": "size must be odd", "large": "size exceeds limit"} {
		obj, err := dials.Get(t.Context(), name, nil)
		require.NoError(t, err)
		_, err = dials.Update(t.Context(), obj, nil)
		require.NoError(t, err, "an update of %s", name)
		obj.Object["metadata"] = map[string]any{"name": "copy"}
		_, err = dials.Create(t.Context(), obj, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if message == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, message)
		}
	}
}

func dial(t *testing.T, group, defaults, rules string) *unstructured.Object {
	t.Helper()
	definition := &unstructured.Object{}
	text := strings.NewReplacer("GROUP", group, "DEFAULT", defaults, "RULES", rules).Replace(dialDefinition)
	require.NoError(t, json.Unmarshal([]byte(text), &definition.Object))
	return definition
}
