package dynamic_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// hasOnlyMetadata checks the representation and returns the object's name.
func hasOnlyMetadata(t *testing.T, of *dynamic.Resource, obj *unstructured.Object) string {
	t.Helper()
	assert.Equal(t, of.APIResource().GVK, obj.GroupVersionKind())
	assert.Len(t, obj.Object, 3)
	return obj.GetName()
}

func TestMetadata_BuiltInAndCustomKinds(t *testing.T) {
	client, namespace := newNamespace(t)
	custom := sharedWidgets(t, client, namespace)
	_, err := custom.Create(t.Context(), named("one", map[string]any{"a": "1"}), nil)
	require.NoError(t, err)
	builtIn := resource(t, client, "deploy").Namespace(namespace)
	_, err = builtIn.Create(t.Context(), deployment("one"), nil)
	require.NoError(t, err)
	ctx := t.Context()
	for _, of := range []*dynamic.Resource{custom.Metadata(), builtIn.Metadata()} {
		read, err := of.Get(ctx, "one", nil)
		require.NoError(t, err)
		assert.Equal(t, "one", hasOnlyMetadata(t, of, read))
		assert.NotEmpty(t, read.GetManagedFields())
		its, err := client.ForObject(ctx, read)
		require.NoError(t, err)
		assert.Equal(t, of.APIResource().GVR, its.APIResource().GVR)
		_, err = its.Update(ctx, read, nil)
		require.ErrorContains(t, err, "metadata only")

		for listed, err := range of.List(ctx, nil) {
			require.NoError(t, err)
			assert.Equal(t, "one", hasOnlyMetadata(t, of, listed))
		}
		page, err := of.ListPage(ctx, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"one"}, namesOf(page.Items))
		assert.Equal(t, of.APIResource().GVK.Kind+"List", page.Kind)
		assert.Equal(t, of.APIResource().GVK.GroupVersion().String(), page.APIVersion)

		patched, err := of.Patch(ctx, "one", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), nil)
		require.NoError(t, err)
		hasOnlyMetadata(t, of, patched)
		assert.Equal(t, map[string]string{"a": "b"}, patched.GetLabels())

		var seen []string
		for event, err := range of.Watch(ctx, &metav1.ListOptions{
			SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}) {
			require.NoError(t, err)
			hasOnlyMetadata(t, of, event.Object)
			seen = append(seen, string(event.Type))
			if event.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				break
			}
		}
		assert.Equal(t, []string{"ADDED", "BOOKMARK"}, seen)

		deleted, err := of.Delete(ctx, "one", nil)
		require.NoError(t, err)
		if deleted.Object != nil {
			hasOnlyMetadata(t, of, deleted.Object)
		} else {
			assert.Equal(t, metav1.StatusSuccess, deleted.Status.Status)
		}
	}
}
