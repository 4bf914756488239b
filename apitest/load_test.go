package apitest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

func storedPod() *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": "a-uid", "resourceVersion": "77", "creationTimestamp": "2020-01-02T03:04:05Z",
			"deletionTimestamp": "2020-01-02T03:05:05Z", "generation": int64(3),
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "node-uid"}},
		},
		"spec": map[string]any{}, "status": map[string]any{"phase": "Running"},
	}}
}

func TestServer_LoadKeepsMetadataAndStatus(t *testing.T) {
	server := apitest.NewServer(t, nil)
	require.NoError(t, server.Load(t.Context(), storedPod()))
	pods, err := server.Client().Resource(t.Context(), "pods")
	require.NoError(t, err)
	pod, err := pods.Namespace("shop").Get(t.Context(), "web", nil)
	require.NoError(t, err)
	want := storedPod()
	want.SetResourceVersion(pod.GetResourceVersion())
	assert.Equal(t, want.Object["metadata"], pod.Object["metadata"])
	assert.Equal(t, want.Object["status"].(map[string]any)["phase"], pod.Object["status"].(map[string]any)["phase"])
	assert.NotEqual(t, "77", pod.GetResourceVersion())
	restartPolicy, _, err := unstructured.Get[string](pod, "spec", "restartPolicy")
	require.NoError(t, err)
	assert.Equal(t, "Always", restartPolicy, "the object is defaulted")
}

func TestServer_LoadErrors(t *testing.T) {
	server := apitest.NewServer(t, nil)
	wrongType := storedPod()
	wrongType.SetName("other")
	wrongType.Object["spec"] = "text"
	require.ErrorContains(t, server.Load(t.Context(), wrongType), `load Pod "other"`)
	unknown := storedPod()
	unknown.SetKind("Widget")
	require.ErrorContains(t, server.Load(t.Context(), unknown), `load Widget "web": the server has no kind /v1, Kind=Widget`)
}

func TestServer_LoadReplacesObjects(t *testing.T) {
	server := apitest.NewServer(t, nil)
	namespace := &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default", "labels": map[string]any{"team": "a"}},
	}}
	require.NoError(t, server.Load(t.Context(), namespace))
	namespaces, err := server.Client().Resource(t.Context(), "namespaces")
	require.NoError(t, err)
	loaded, err := namespaces.Get(t.Context(), "default", nil)
	require.NoError(t, err)
	assert.Equal(t, "a", loaded.GetLabels()["team"])
}

func TestServer_LoadWithoutUID(t *testing.T) {
	server := apitest.NewServer(t, nil)
	pod := storedPod()
	pod.SetUID("")
	require.NoError(t, server.Load(t.Context(), pod))
	pods, err := server.Client().Resource(t.Context(), "pods")
	require.NoError(t, err)
	loaded, err := pods.Namespace("shop").Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.NotEqual(t, types.UID(""), loaded.GetUID())
	_, err = pods.Namespace("shop").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"A B":"c"}}}`), nil)
	assert.True(t, apierrors.IsInvalid(err), "writes are validated: %v", err)
}
