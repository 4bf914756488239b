package applyset_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
)

func TestSet_ApplyDryRun(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("shop")
	const text = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: red}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {color: red}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
`
	_, err := set.Apply(t.Context(), e.objects(t, text), nil)
	require.NoError(t, err)
	changed := e.objects(t, strings.Replace(text, "red", "blue", 1)+"---\n{apiVersion: v1, kind: Secret, metadata: {name: d}}")
	changed = append(changed[:2], changed[3])
	events, err := set.Apply(t.Context(), changed, &applyset.ApplyOptions{DryRun: true})
	require.NoError(t, err)
	want := []string{"configured ConfigMap a", "unchanged ConfigMap b", "pruned ConfigMap c", "created Secret d"}
	assert.ElementsMatch(t, want, outcomes(events))
	events, err = set.Apply(t.Context(), changed, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, want, outcomes(events), "the dry run wrote nothing")
}

// TestSet_ApplyDryRunEqualFields has a field of a different manager with the value to apply: an apply changes only the owners.
func TestSet_ApplyDryRunEqualFields(t *testing.T) {
	e := newEnvironment(t)
	objects := e.objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: red}}")
	set := e.set("shop")
	_, err := set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	configMaps, err := e.ForKind(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	require.NoError(t, err)
	others := configMaps.Namespace(e.namespace).WithDefaults(&dynamic.Defaults{FieldManager: "other"})
	for _, color := range []string{"blue", "red"} {
		_, err = others.Apply(t.Context(), e.objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: "+color+"}}")[0].Object,
			&metav1.ApplyOptions{Force: true})
		require.NoError(t, err)
	}
	for _, c := range []struct {
		dryRun bool
		want   applyset.Action
	}{{true, applyset.Configured}, {false, applyset.Configured}, {true, applyset.Unchanged}} {
		events, err := set.Apply(t.Context(), objects, &applyset.ApplyOptions{DryRun: c.dryRun})
		require.NoError(t, err)
		require.Len(t, events, 1)
		assert.Equal(t, c.want, events[0].Action)
	}
}
