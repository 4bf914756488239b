package controller_test

import (
	"context"
	"testing"
	"time"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// patience is how long tests wait for what a real cluster does in its own time.
const patience = time.Minute

// connect gives an administrator's client.
func connect(t testing.TB) *dynamic.Client {
	t.Helper()
	return connectAs(t, "admin")
}

// connectAs gives a client of one of the kubeconfig's contexts.
func connectAs(t testing.TB, kubeContext string) *dynamic.Client {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: kubeContext})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func resource(t testing.TB, client *dynamic.Client, name string) *dynamic.Resource {
	t.Helper()
	found, err := client.Resource(t.Context(), name)
	require.NoError(t, err)
	return found
}

// newNamespace returns an administrator's client and the name of a new namespace, deleted when the test ends.
func newNamespace(t testing.TB) (client *dynamic.Client, namespace string) {
	t.Helper()
	client = connect(t)
	namespaces := resource(t, client, "namespaces")
	created, err := namespaces.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"generateName": "test-"},
	}}, nil)
	require.NoError(t, err)
	removed(t, namespaces, created.GetName())
	return client, created.GetName()
}

// removed deletes an object when the test ends.
func removed(t testing.TB, of *dynamic.Resource, name string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := of.Delete(ctx, name, nil)
		require.NoError(t, err)
	})
}

// removedIfThere deletes a definition when the test ends.
func removedIfThere(t testing.TB, client *dynamic.Client, definition string) {
	t.Helper()
	crds := resource(t, client, "crd")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := crds.Delete(ctx, definition, nil); !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	})
}

// createConfigMap gives a handle on config maps and one of them.
func createConfigMap(t testing.TB, client *dynamic.Client, namespace string, metadata map[string]any) (*dynamic.Resource, *unstructured.Object) {
	t.Helper()
	of := resource(t, client, "configmaps").In(namespace)
	obj, err := of.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": metadata}}, nil)
	require.NoError(t, err)
	return of, obj
}

// widgets registers a kind of the test's own, in a group of the namespace's name.
func widgets(t testing.TB, client *dynamic.Client, namespace string) *dynamic.Resource {
	t.Helper()
	registered, err := controller.Register(t.Context(), client, []byte(definition("widgets", namespace+".example.com")), nil)
	require.NoError(t, err)
	removed(t, resource(t, client, "crd"), "widgets."+namespace+".example.com")
	return registered[0].In(namespace)
}
