package dynamic_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Replicas int    `json:"replicas,omitempty"`
		Color    string `json:"color,omitempty"`
	} `json:"spec,omitzero"`
	Status struct {
		Phase string `json:"phase,omitempty"`
	} `json:"status,omitzero"`
}

func widgetOf(name string, replicas int) *widget {
	one := &widget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	one.Spec.Replicas = replicas
	return one
}

func TestHandle_AllVerbs(t *testing.T) {
	client, namespace := newNamespace(t)
	untyped := sharedWidgets(t, client, namespace)
	of := dynamic.As[widget](untyped)
	ctx := t.Context()

	created, err := of.Create(ctx, widgetOf("one", 1), nil)
	require.NoError(t, err)
	assert.Equal(t, "Widget", created.Kind)
	assert.Equal(t, namespace, created.Namespace)
	assert.NotEmpty(t, created.UID)

	created.Spec.Replicas = 2
	updated, err := of.Update(ctx, created, nil)
	require.NoError(t, err)
	assert.Equal(t, int64(2), updated.Generation)

	_, err = of.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"secret":"unknown to the type"}}`), nil)
	require.NoError(t, err)
	changed, outcome, err := of.Upsert(ctx, "one", func(w *widget) error { w.Spec.Replicas++; return nil }, nil)
	require.NoError(t, err)
	assert.Equal(t, dynamic.UpsertUpdated, outcome)
	assert.Equal(t, 3, changed.Spec.Replicas)
	read, err := dynamic.As[unstructured.Object](of).Get(ctx, "one", nil)
	require.NoError(t, err)
	assert.Equal(t, "unknown to the type", field(t, read, "spec", "secret"))

	updated, err = of.Subresource("status").Get(ctx, "one", nil)
	require.NoError(t, err)
	updated.Status.Phase = "Ready"
	_, err = of.Subresource("status").Update(ctx, updated, nil)
	require.NoError(t, err)
	updated, err = of.Wait(ctx, "one", dynamic.FieldEquals("status.phase", "Ready"))
	require.NoError(t, err)
	assert.Equal(t, "Ready", updated.Status.Phase)

	applied := widgetOf("one", 0)
	applied.Spec.Color = "red"
	both, err := of.Apply(ctx, applied, &metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
	assert.Equal(t, []any{3, "red"}, []any{both.Spec.Replicas, both.Spec.Color})

	for one, err := range of.List(ctx, nil) {
		require.NoError(t, err)
		assert.Equal(t, both.Spec, one.Spec)
	}
	for event, err := range of.AllNamespaces().Watch(ctx, &metav1.ListOptions{ResourceVersion: created.ResourceVersion}) {
		require.NoError(t, err)
		assert.Equal(t, "one", event.Object.Name)
		break
	}
	for lazy, err := range dynamic.As[unstructured.Lazy](untyped).List(ctx, nil) {
		require.NoError(t, err)
		replicas, _, err := unstructured.Get[int64](lazy, "spec", "replicas")
		require.NoError(t, err)
		assert.Equal(t, int64(3), replicas)
	}
	for meta, err := range dynamic.As[metav1.PartialObjectMetadata](untyped.Metadata()).List(ctx, nil) {
		require.NoError(t, err)
		assert.Equal(t, "one", meta.Name)
	}
	for meta, err := range of.Metadata().List(ctx, nil) {
		require.NoError(t, err)
		assert.Equal(t, "one", meta.Name)
		assert.Zero(t, meta.Spec)
	}
	require.NoError(t, of.ForEach(ctx, nil, nil, func(_ context.Context, in *dynamic.Handle[widget], one *widget) error {
		assert.Equal(t, both.Spec, one.Spec)
		deleted, err := in.DeleteCollection(ctx, nil, nil)
		if assert.NoError(t, err) && assert.Len(t, deleted.Items, 1) {
			assert.Equal(t, "one", deleted.Items[0].Name)
		}
		return nil
	}))
	_, err = of.Wait(ctx, "one", dynamic.Deleted())
	require.NoError(t, err)
}
