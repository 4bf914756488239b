package dynamic_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func namesOf(objects []*unstructured.Object) []string {
	var names []string
	for _, obj := range objects {
		names = append(names, obj.GetName())
	}
	return names
}

// fill creates n ConfigMaps with the label app=many, whose names are in order, and returns them as names does.
func fill(t *testing.T, configMaps *dynamic.Resource, n int) []string {
	t.Helper()
	var created []string
	for i := range n {
		obj := configMap(fmt.Sprintf("many-%03d", i), map[string]any{"n": fmt.Sprint(i)})
		obj.SetLabels(map[string]string{"app": "many"})
		_, err := configMaps.Create(t.Context(), obj, nil)
		require.NoError(t, err)
		created = append(created, "ConfigMap "+obj.GetName())
	}
	return created
}

func TestList_PagesInOrder(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	want := fill(t, configMaps, 25)
	for _, limit := range []int64{0, 1, 10, 25, 26} {
		got, err := names(t, configMaps, &metav1.ListOptions{LabelSelector: "app=many", Limit: limit})
		require.NoError(t, err)
		assert.Equal(t, want, got, "limit %d", limit)
	}
	page, err := configMaps.ListPage(t.Context(), &metav1.ListOptions{Limit: 10})
	require.NoError(t, err)
	require.NotNil(t, page.RemainingItemCount)
	assert.GreaterOrEqual(t, *page.RemainingItemCount, int64(15))
	assert.Len(t, page.Items, 10)
	got, err := names(t, configMaps, &metav1.ListOptions{FieldSelector: "metadata.name=many-007"})
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap many-007"}, got)
}

func TestListPage_ExpiredContinueToken(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	fill(t, configMaps, 3)
	page, err := configMaps.ListPage(t.Context(), &metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	compactAndRestart(t, configMaps)
	_, err = configMaps.ListPage(t.Context(), &metav1.ListOptions{Limit: 1, Continue: page.Continue})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

// compactAndRestart makes the server forget all previous revisions.
func compactAndRestart(t *testing.T, configMaps *dynamic.Resource) {
	t.Helper()
	_, err := configMaps.Create(t.Context(), configMap("later", nil), nil)
	require.NoError(t, err)
	cluster.Compact(t)
	cluster.RestartAPIServer(t, true) // an orderly shutdown takes longer and forgets no more
}

// TestListPage_EqualsApimachinery lists all resources of the server and compares them with apimachinery's
// decoding of the same response.
func TestListPage_EqualsApimachinery(t *testing.T) {
	client, namespace := newNamespace(t)
	_, err := resource(t, client, "deploy").Namespace(namespace).Create(t.Context(), deployment("web"), nil)
	require.NoError(t, err)
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	served, err := client.Discovery().Snapshot(t.Context())
	require.NoError(t, err)
	compared := 0
	for _, group := range served.Groups {
		for _, version := range group.Versions {
			for _, listed := range version.Resources {
				if listed.Supports("list") {
					compared += compare(t, conn, resource(t, client, listed.GVR.Resource+"."+version.Name+"."+group.Name))
				}
			}
		}
	}
	assert.Greater(t, compared, 50)
}

func compare(t *testing.T, conn *transport.Conn, of *dynamic.Resource) int {
	gvr := of.APIResource().GVR
	path := "/apis/" + gvr.Group + "/" + gvr.Version + "/" + gvr.Resource
	if gvr.Group == "" {
		path = "/api/" + gvr.Version + "/" + gvr.Resource
	}
	response, err := conn.Do(t.Context(), &transport.Request{Method: http.MethodGet, Path: path})
	if apierrors.IsMethodNotSupported(err) {
		return 0
	}
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	decoded, _, err := unstructuredv1.UnstructuredJSONScheme.Decode(body, nil, nil)
	require.NoError(t, err)
	want, isList := decoded.(*unstructuredv1.UnstructuredList)
	require.True(t, isList)

	wide := of
	if of.APIResource().Namespaced {
		wide = of.AllNamespaces()
	}
	if want.GetResourceVersion() == "" {
		return 0 // component statuses: nothing is stored, and every request reads the components' status
	}
	// The revision that the test has read.
	page, err := wide.ListPage(t.Context(), &metav1.ListOptions{
		ResourceVersion: want.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	require.NoError(t, err, "%s", of)
	require.Len(t, page.Items, len(want.Items), "%s", of)
	for i, item := range page.Items {
		require.Equal(t, &want.Items[i], item)
	}
	return len(page.Items)
}
