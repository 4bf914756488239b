package clients_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	runtimefake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// gateways is a resource whose name client-go guesses wrongly from its kind: gatewaies.
var (
	gateways    = schema.GroupVersionResource{Group: "plural.example.com", Version: "v1", Resource: "gateways"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// gateway is an object without a Go type.
func gateway(namespace string) *unstructuredv1.Unstructured {
	return &unstructuredv1.Unstructured{Object: map[string]any{
		"apiVersion": "plural.example.com/v1", "kind": "Gateway", "metadata": map[string]any{"name": "web", "namespace": namespace},
	}}
}

// serveGateways creates the definition of gateways and an object.
func serveGateways(t *testing.T, w world) {
	t.Helper()
	definition := &unstructuredv1.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gateways.plural.example.com"},
		"spec": map[string]any{
			"group": "plural.example.com", "scope": "Namespaced", "names": map[string]any{"plural": "gateways", "kind": "Gateway"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
	_, err := w.dynamic.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		assert.NoError(t, w.dynamic.Resource(definitions).Delete(ctx, definition.GetName(), metav1.DeleteOptions{}))
	})
	require.EventuallyWithT(t, func(c *assert.CollectT) { // it is served a moment later
		_, err := w.dynamic.Resource(gateways).Namespace(w.namespace).Create(t.Context(), gateway(w.namespace), metav1.CreateOptions{})
		assert.True(c, err == nil || apierrors.IsAlreadyExists(err), err)
	}, time.Minute, 50*time.Millisecond)
}

func namesOf(t *testing.T, client dynamic.Interface, namespace string) []string {
	t.Helper()
	found, err := client.Resource(gateways).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for i := range found.Items {
		names = append(names, found.Items[i].GetName())
	}
	return names
}

// TestFakes_GuessPlurals is about objects that a fake is given when it is made, client-go's issue 1082.
func TestFakes_GuessPlurals(t *testing.T) {
	for name, kubeconfig := range map[string]string{"real": cluster.Kubeconfig(t), "apitest": apitest.NewServer(t, nil).Kubeconfig(t)} {
		w := realWorld(t, kubeconfig)
		serveGateways(t, w)
		assert.Equal(t, []string{"web"}, namesOf(t, w.dynamic, w.namespace), name)
	}
	lists := map[schema.GroupVersionResource]string{gateways: "GatewayList"}
	clientGo := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, gateway("default"))
	assert.Empty(t, namesOf(t, clientGo, "default"), "client-go's fake")

	found := &unstructuredv1.UnstructuredList{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Group: gateways.Group, Version: "v1", Kind: "GatewayList"})
	require.NoError(t, runtimefake.NewClientBuilder().WithObjects(gateway("default")).Build().List(t.Context(), found, runtimeclient.InNamespace("default")))
	assert.Len(t, found.Items, 1, "controller-runtime's fake")
}
