package controllertest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

// Timeout bounds waits for a real cluster.
const Timeout = time.Minute

// Connect returns an administrator's client of the cluster.
func Connect(t testing.TB) *dynamic.Client {
	t.Helper()
	return ConnectAs(t, "admin")
}

// ConnectAs returns a client for a context of the kubeconfig.
func ConnectAs(t testing.TB, kubeContext string) *dynamic.Client {
	t.Helper()
	return testclient.Connect(t, kubeContext)
}

// Resource returns a handle on the named resource.
func Resource(t testing.TB, client *dynamic.Client, name string) *dynamic.Resource {
	t.Helper()
	return testclient.Resource(t, client, name)
}

// NewNamespace returns an administrator's client and the name of a new namespace. The namespace is deleted when the test ends.
func NewNamespace(t testing.TB) (client *dynamic.Client, namespace string) {
	t.Helper()
	client = Connect(t)
	namespaces := Resource(t, client, "namespaces")
	created, err := namespaces.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"generateName": "test-"},
	}}, nil)
	require.NoError(t, err)
	DeleteAfter(t, namespaces, created.GetName())
	return client, created.GetName()
}

// DeleteAfter deletes an object when the test ends.
func DeleteAfter(t testing.TB, of *dynamic.Resource, name string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Timeout)
		defer cancel()
		_, err := of.Delete(ctx, name, nil)
		require.NoError(t, err)
	})
}

// DeleteCRDAfter deletes a definition when the test ends.
func DeleteCRDAfter(t testing.TB, client *dynamic.Client, definition string) {
	t.Helper()
	crds := Resource(t, client, "crd")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Timeout)
		defer cancel()
		if _, err := crds.Delete(ctx, definition, nil); !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	})
}

// Named returns an object with metadata.
func Named(apiVersion, kind, namespace, name, uid string) *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(types.UID(uid))
	return obj
}

// Pod returns a Pod of the namespace shop.
func Pod(name string) *unstructured.Object { return Named("v1", "Pod", "shop", name, name) }
