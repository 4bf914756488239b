package write_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// The verbs of the library's client on a server, as its users call them.

func connectedWidgets(t *testing.T) (*dynamic.Client, *dynamic.Resource) {
	t.Helper()
	client := apitest.NewServer(t, nil).Client()
	definitions, err := client.Resource(t.Context(), "customresourcedefinitions")
	require.NoError(t, err)
	for _, req := range readScenario(t, "testdata/setup.txt") {
		_, err := definitions.Create(t.Context(), decoded(t, req.body), nil)
		require.NoError(t, err)
	}
	widgets, err := client.Resource(t.Context(), "widgets.v1.write.example.com")
	require.NoError(t, err)
	return client, widgets.Namespace("default")
}

func decoded(t *testing.T, content string) *unstructured.Object {
	t.Helper()
	obj, err := unstructured.Decode([]byte(content))
	require.NoError(t, err)
	return obj
}

const widgetManifest = `{"apiVersion":"write.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1}}`

func TestClient_WritesOfCustomResource(t *testing.T) {
	_, widgets := connectedWidgets(t)
	ctx := t.Context()
	created, err := widgets.Create(ctx, decoded(t, widgetManifest), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1, created.GetGeneration())

	changed := created.DeepCopy()
	require.NoError(t, unstructured.Set(changed, 2, "spec", "size"))
	updated, err := widgets.Update(ctx, changed, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 2, updated.GetGeneration())
	_, err = widgets.Update(ctx, changed, nil)
	assert.True(t, apierrors.IsConflict(err), "%v", err)

	updated.Object["status"] = map[string]any{"phase": "Ready"}
	ready, err := widgets.Subresource("status").Update(ctx, updated, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 2, ready.GetGeneration())
	assert.Equal(t, map[string]any{"phase": "Ready"}, ready.Object["status"])

	for patchType, patch := range map[types.PatchType]string{
		types.MergePatchType: `{"spec":{"color":"blue"}}`, types.JSONPatchType: `[{"op":"test","path":"/spec/size","value":2}]`,
	} {
		_, err := widgets.Patch(ctx, "w", patchType, []byte(patch), nil)
		require.NoError(t, err, patchType)
	}
	_, err = widgets.Patch(ctx, "w", types.StrategicMergePatchType, []byte(`{}`), nil)
	assert.Error(t, err)

	scaled, err := widgets.Scale(ctx, "w", 3, nil)
	require.NoError(t, err)
	replicas, _, err := unstructured.Get[int64](scaled, "spec", "replicas")
	require.NoError(t, err)
	assert.EqualValues(t, 3, replicas)

	_, result, err := widgets.Upsert(ctx, "w", func(obj *unstructured.Object) error {
		obj.SetLabels(map[string]string{"a": "b"})
		return nil
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, dynamic.UpsertUpdated, result)

	deleted, err := widgets.Delete(ctx, "w", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(created.GetUID())}})
	require.NoError(t, err)
	assert.Equal(t, "w", deleted.Status.Details.Name)
	_, err = widgets.Get(ctx, "w", nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestClient_ApplyConflicts(t *testing.T) {
	_, widgets := connectedWidgets(t)
	ctx := t.Context()
	_, err := widgets.Apply(ctx, decoded(t, widgetManifest), &metav1.ApplyOptions{FieldManager: "one"})
	require.NoError(t, err)
	other := decoded(t, `{"apiVersion":"write.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":5}}`)
	_, err = widgets.Apply(ctx, other, &metav1.ApplyOptions{FieldManager: "two"})
	var conflict *dynamic.ApplyConflictError
	require.ErrorAs(t, err, &conflict)
	require.Len(t, conflict.Conflicts, 1)
	forced, err := widgets.Apply(ctx, other, &metav1.ApplyOptions{FieldManager: "two", Force: true})
	require.NoError(t, err)
	size, _, err := unstructured.Get[int64](forced, "spec", "size")
	require.NoError(t, err)
	assert.EqualValues(t, 5, size)
}

func TestClient_FieldValidation(t *testing.T) {
	_, widgets := connectedWidgets(t)
	manifest := decoded(t, `{"apiVersion":"write.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1,"nope":true}}`)
	_, err := widgets.Create(t.Context(), manifest, &metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	var invalid *dynamic.FieldValidationError
	require.ErrorAs(t, err, &invalid)
	assert.ErrorContains(t, err, "spec.nope")
}

func TestClient_DeletesCollection(t *testing.T) {
	_, widgets := connectedWidgets(t)
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		obj := decoded(t, widgetManifest)
		obj.SetName(name)
		obj.SetLabels(map[string]string{"name": name})
		_, err := widgets.Create(ctx, obj, nil)
		require.NoError(t, err)
	}
	page, err := widgets.DeleteCollection(ctx, nil, &metav1.ListOptions{LabelSelector: "name in (a,b)"})
	require.NoError(t, err)
	assert.Len(t, page.Items, 2)
	var names []string
	for obj, err := range widgets.List(ctx, nil) {
		require.NoError(t, err)
		names = append(names, obj.GetName())
	}
	assert.Equal(t, []string{"c"}, names)
}

func TestClient_Evict(t *testing.T) {
	client, _ := connectedWidgets(t)
	ctx := t.Context()
	pods, err := client.Resource(ctx, "pods")
	require.NoError(t, err)
	pods = pods.Namespace("default")
	_, err = pods.Create(ctx, decoded(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"app":"p"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`), nil)
	require.NoError(t, err)
	_, err = pods.Subresource("status").Patch(ctx, "p", types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`), nil)
	require.NoError(t, err)
	budgets, err := client.Resource(ctx, "poddisruptionbudgets")
	require.NoError(t, err)
	_, err = budgets.Namespace("default").Create(ctx, decoded(t, `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"p"}}}}`), nil)
	require.NoError(t, err)
	_, err = budgets.Namespace("default").Subresource("status").Patch(ctx, "b", types.MergePatchType, []byte(`{"status":{"observedGeneration":1,"desiredHealthy":1}}`), nil)
	require.NoError(t, err)

	err = pods.Evict(ctx, "p", nil)
	var budget *dynamic.DisruptionBudgetError
	require.ErrorAs(t, err, &budget)
	assert.Equal(t, []string{"The disruption budget b needs 1 healthy pods and has 0 currently"}, budget.Causes)

	_, err = budgets.Namespace("default").Subresource("status").Patch(ctx, "b", types.MergePatchType, []byte(`{"status":{"disruptionsAllowed":1,"currentHealthy":2}}`), nil)
	require.NoError(t, err)
	require.NoError(t, pods.Evict(ctx, "p", nil))
	_, err = pods.Get(ctx, "p", nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestClient_FinalizersDelayDeletion(t *testing.T) {
	_, widgets := connectedWidgets(t)
	ctx := t.Context()
	obj := decoded(t, widgetManifest)
	obj.SetFinalizers([]string{"example.com/f"})
	created, err := widgets.Create(ctx, obj, nil)
	require.NoError(t, err)
	deleted, err := widgets.Delete(ctx, "w", nil)
	require.NoError(t, err)
	require.NotNil(t, deleted.Object)
	assert.WithinDuration(t, time.Now(), deleted.Object.GetDeletionTimestamp().Time, time.Minute)
	assert.Equal(t, created.GetUID(), deleted.Object.GetUID())
	last, err := widgets.Patch(ctx, "w", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, deleted.Object.GetResourceVersion(), last.GetResourceVersion())
	_, err = widgets.Get(ctx, "w", nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}
