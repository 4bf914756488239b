package applyset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/readiness"
)

// gate is an object that is ready when data.ready is "yes". The further object depends on it, and a third object on an object that
// the API server rejects.
const gate = `
apiVersion: v1
kind: ConfigMap
metadata: {name: gate}
data: {ready: "no"}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: after
  annotations: {config.kubernetes.io/depends-on: /namespaces/NAMESPACE/ConfigMap/gate}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: skipped
  annotations: {config.kubernetes.io/depends-on: /namespaces/NAMESPACE/ConfigMap/Rejected}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Rejected}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: free}
`

// TestSet_ApplyAwaitsDependencies applies objects that depend on an object that becomes ready later, and on a rejected object.
func TestSet_ApplyAwaitsDependencies(t *testing.T) {
	e := newEnvironment(t)
	set := applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "order"}, &applyset.Options{Rules: []readiness.Rule{{
		Kind: "ConfigMap", Current: []readiness.Check{{Field: "data.ready", Values: []string{"yes"}}},
	}}})
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	var names []string
	events, err := set.Apply(t.Context(), e.objects(t, gate), &applyset.ApplyOptions{OnEvent: func(event applyset.Event) {
		names = append(names, event.Object.Name)
		if event.Object.Name == "gate" {
			_, err := configMaps.Patch(t.Context(), "gate", types.MergePatchType, []byte(`{"data":{"ready":"yes"}}`), nil)
			assert.NoError(t, err)
		}
	}})
	var failed []string
	for _, event := range events {
		if event.Action == applyset.Failed {
			failed = append(failed, event.Object.Name)
		}
	}
	assert.Equal(t, []string{"Rejected", "skipped"}, failed)
	require.ErrorContains(t, err, `ConfigMap "`+e.namespace+`/skipped": its dependency ConfigMap "`+e.namespace+`/Rejected": it was not applied`)
	assert.Subset(t, names, []string{"gate", "after", "free"})
	for _, name := range []string{"gate", "after", "free"} {
		_, err := configMaps.Get(t.Context(), name, nil)
		assert.NoError(t, err, name)
	}
}

// TestSet_RejectsManifestsBeforeWrites reports all faulty objects with their positions, and writes nothing.
func TestSet_RejectsManifestsBeforeWrites(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("rejected")
	e.requests.reset()
	for want, text := range map[string]string{
		`test: document 2, line 5`:     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		`no resource or kind "Unknown`: "apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: a}\n",
		`it occurs twice`:              "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: b}\n",
		`already has the label`:        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {applyset.kubernetes.io/part-of: x}}\n",
		`it is the parent`:             "apiVersion: v1\nkind: Secret\nmetadata: {name: rejected}\n",
	} {
		objects := e.objects(t, text)
		_, err := set.Apply(t.Context(), objects, nil)
		assert.ErrorContains(t, err, want)
	}
	assert.Empty(t, writes(e.requests.reset()))
}
