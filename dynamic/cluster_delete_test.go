package dynamic_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
)

// TestDeleteCollection_Selectors covers a built-in and a custom kind.
func TestDeleteCollection_Selectors(t *testing.T) {
	client, namespace := newNamespace(t)
	for name, of := range map[string]*dynamic.Resource{
		"a built-in kind": resource(t, client, "secrets").Namespace(namespace),
		"a custom kind":   sharedWidgets(t, client, namespace),
	} {
		t.Run(name, func(t *testing.T) {
			for name, app := range map[string]string{"a": "old", "b": "old", "c": "new", "kept": "old"} {
				obj := named(name, nil)
				obj.SetLabels(map[string]string{"app": app})
				if name == "kept" {
					obj.SetFinalizers([]string{"example.com/keep"})
				}
				_, err := of.Create(t.Context(), obj, nil)
				require.NoError(t, err)
			}
			old := &metav1.ListOptions{LabelSelector: "app=old"}
			dry, err := of.DeleteCollection(t.Context(), &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, old)
			require.NoError(t, err)
			assert.Equal(t, []string{"a", "b", "kept"}, namesOf(dry.Items))

			deleted, err := of.DeleteCollection(t.Context(), nil, old)
			require.NoError(t, err)
			assert.Equal(t, []string{"a", "b", "kept"}, namesOf(deleted.Items))
			for _, item := range deleted.Items {
				assert.Equal(t, of.APIResource().GVK, item.GroupVersionKind())
			}
			left, err := of.ListPage(t.Context(), nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"c", "kept"}, namesOf(left.Items))
			assert.NotNil(t, left.Items[1].GetDeletionTimestamp(), "its deletion has begun")

			_, err = of.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
			require.NoError(t, err)
			_, err = of.DeleteCollection(t.Context(), nil, nil)
			require.NoError(t, err)
			left, err = of.ListPage(t.Context(), nil)
			require.NoError(t, err)
			assert.Empty(t, left.Items)
		})
	}
}

func TestDeleteCollection_Limit(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	fill(t, configMaps, 5)
	selected := &metav1.ListOptions{LabelSelector: "app=many", Limit: 2}
	var deleted []string
	for range 3 {
		page, err := configMaps.DeleteCollection(t.Context(), nil, selected)
		require.NoError(t, err)
		deleted = append(deleted, namesOf(page.Items)...)
		selected.Continue = page.Continue
	}
	assert.Equal(t, []string{"many-000", "many-001", "many-002", "many-003", "many-004"}, deleted)
	assert.Empty(t, selected.Continue)
}

func TestDeleteCollection_Forbidden(t *testing.T) {
	newNamespace(t)
	_, err := resource(t, connect(t, "limited"), "configmaps").DeleteCollection(t.Context(), nil, nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `User "limited" cannot deletecollection resource "configmaps" in API group "" in the namespace "default"`)
}
