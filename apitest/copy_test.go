package apitest_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// copiedPod is a pod as a server of a later version returns it, without a defaulted field and with an unknown field.
func copiedPod() *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"namespace": "shop", "name": "web", "uid": "a-uid", "resourceVersion": "77", "creationTimestamp": "2020-01-02T03:04:05Z",
			"deletionTimestamp": "2020-01-02T03:05:05Z", "generation": int64(3),
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "node-uid"}},
		},
		"spec": map[string]any{"fieldOfTheFuture": true}, "status": map[string]any{"phase": "Running"},
	}}
}

// serveCopy starts a server with a copy of objects.
func serveCopy(t *testing.T, resources []clustercopy.Resource, objects ...*unstructured.Object) *apitest.Server {
	t.Helper()
	c, err := clustercopy.Of(objects...)
	require.NoError(t, err)
	c.Resources = resources
	return apitest.NewServer(t, &apitest.Options{Copy: c})
}

func handleOf(t *testing.T, server *apitest.Server, name string) *dynamic.Resource {
	t.Helper()
	handle, err := server.Client().Resource(t.Context(), name)
	require.NoError(t, err)
	return handle
}

func TestOptions_CopyKeepsObjects(t *testing.T) {
	server := serveCopy(t, nil, copiedPod())
	pods := handleOf(t, server, "pods").Namespace("shop")
	pod, err := pods.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Equal(t, copiedPod().Object, pod.Object)
	assert.Empty(t, server.CopyDifferences())
	page, err := pods.ListPage(t.Context(), nil)
	require.NoError(t, err)
	assert.Len(t, page.Items, 1)
	_, err = handleOf(t, server, "namespaces").Get(t.Context(), "shop", nil)
	require.NoError(t, err, "a missing namespace is created")
}

func TestOptions_CopyOfEventInBothGroups(t *testing.T) {
	event := func(apiVersion, about, text string) *unstructured.Object {
		return &unstructured.Object{Object: map[string]any{
			"apiVersion": apiVersion, "kind": "Event", "metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "an-uid", "resourceVersion": "77"},
			about: map[string]any{"kind": "Pod", "name": "web"}, text: "started",
		}}
	}
	server := serveCopy(t, nil, event("v1", "involvedObject", "message"), event("events.k8s.io/v1", "regarding", "note"))
	for name, text := range map[string]string{"events": "message", "events.events.k8s.io": "note"} {
		got, err := handleOf(t, server, name).Namespace("shop").Get(t.Context(), "web", nil)
		require.NoError(t, err)
		assert.Equal(t, "started", got.Object[text])
	}
}

func TestOptions_CopyWithoutResourceVersion(t *testing.T) {
	pod := copiedPod()
	delete(pod.Object, "spec")
	pod.SetUID("")
	pod.SetResourceVersion("")
	server := serveCopy(t, nil, pod)
	pods := handleOf(t, server, "pods").Namespace("shop")
	loaded, err := pods.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	restartPolicy, _, err := unstructured.Get[string](loaded, "spec", "restartPolicy")
	require.NoError(t, err)
	assert.Equal(t, "Always", restartPolicy, "the object is defaulted")
	assert.NotEqual(t, types.UID(""), loaded.GetUID())
	assert.NotEmpty(t, loaded.GetResourceVersion())
	assert.NotNil(t, loaded.GetDeletionTimestamp())
	_, err = pods.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"A B":"c"}}}`), nil)
	assert.True(t, apierrors.IsInvalid(err), "writes are validated: %v", err)
}

func TestOptions_CopyReplacesTheFreshCluster(t *testing.T) {
	namespace := &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": "default", "uid": "a-uid", "resourceVersion": "3", "labels": map[string]any{"team": "a"}},
	}}
	server := serveCopy(t, nil, namespace)
	loaded, err := handleOf(t, server, "namespaces").Get(t.Context(), "default", nil)
	require.NoError(t, err)
	assert.Equal(t, namespace.Object, loaded.Object)
}

func TestOptions_CopyErrors(t *testing.T) {
	wrongType := copiedPod()
	wrongType.SetResourceVersion("")
	wrongType.Object["spec"] = "text"
	for name, tc := range map[string]struct {
		objects []*unstructured.Object
		want    string
	}{
		"wrong type": {[]*unstructured.Object{wrongType}, "load Pod shop/web of Options.Copy: "},
		"twice":      {[]*unstructured.Object{copiedPod(), copiedPod()}, "load Pod shop/web: the object is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := clustercopy.Of(tc.objects...)
			require.NoError(t, err)
			_, err = apitest.Start(&apitest.Options{Copy: c})
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// custom returns an object of a kind without a definition.
func custom(kind, name, resourceVersion string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "metrics.example.com/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "resourceVersion": resourceVersion, "uid": name}, "usage": "1",
	}}
}

func TestServer_CopyDifferences(t *testing.T) {
	resources := []clustercopy.Resource{
		{Group: "metrics.example.com", Version: "v1", Plural: "usages", Kind: "Usage", IsAggregated: true, Subresources: []string{"status"}},
		{Group: "metrics.example.com", Version: "v1", Plural: "limits", Kind: "Limit"},
	}
	double := copiedPod()
	double.SetName("double")
	server := serveCopy(t, resources,
		copiedPod(), double, custom("Usage", "a", "5"), custom("Usage", "b", ""), custom("Limit", "a", "abc"), custom("Limit", "b", "9223372036854775807"),
		custom("Unknown", "a", "80"))
	var texts []string
	for _, d := range server.CopyDifferences() {
		texts = append(texts, d.String())
	}
	assert.Equal(t, []string{
		"Pod (1, such as shop/double): new resourceVersions, since other objects have the same ones",
		"Usage.metrics.example.com (1, such as a): served without a schema, since the kind is neither built in nor has a definition",
		"Usage.metrics.example.com (1, such as a): new resourceVersions, since an aggregated API server has revisions of its own",
		"Limit.metrics.example.com (1, such as a): served without a schema, since the kind is neither built in nor has a definition",
		"Limit.metrics.example.com (2, such as a): new resourceVersions, since those of the cluster are not numbers",
		"Unknown.metrics.example.com (1, such as a): absent, since the server can neither find the kind nor define it",
	}, texts)
	page, err := handleOf(t, server, "usages").ListPage(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	assert.Equal(t, "1", page.Items[0].Object["usage"])
	assert.NotEqual(t, "5", page.Items[0].GetResourceVersion())
	server.AssertRequests(t, 0, hasWarning)
	_, err = handleOf(t, server, "usages").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"usage":7}`), nil)
	require.NoError(t, err)
	server.AssertRequests(t, 1, hasWarning)
	seen := map[string]bool{}
	for _, obj := range server.Objects() {
		assert.False(t, seen[obj.GetResourceVersion()], "%s %s", obj.GetKind(), obj.GetName())
		seen[obj.GetResourceVersion()] = true
	}
}

func hasWarning(r apitest.Request) bool {
	return slices.Contains(r.Warnings, "apitest: not validated: the object, since the server has no schema of its kind")
}
