package dynamic_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// patience bounds how long tests wait for a real cluster.
const patience = 30 * time.Second

// connect returns a client of the sandbox, as one of its kubeconfig's contexts: admin, token or limited.
func connect(t *testing.T, kubeContext string) *dynamic.Client {
	t.Helper()
	return testclient.Connect(t, kubeContext)
}

// newNamespace returns an administrator's client and the name of a new namespace, deleted when the test ends.
func newNamespace(t *testing.T) (client *dynamic.Client, namespace string) {
	t.Helper()
	client = connect(t, "admin")
	namespaces := resource(t, client, "namespaces")
	created, err := namespaces.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"generateName": "test-"},
	}}, nil)
	require.NoError(t, err)
	removed(t, namespaces, created.GetName())
	return client, created.GetName()
}

// removed deletes an object when the test ends.
func removed(t *testing.T, of *dynamic.Resource, name string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := of.Delete(ctx, name, nil)
		require.NoError(t, err)
	})
}

func configMap(name string, data map[string]any) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": data,
	}}
}

func deployment(name string) *unstructured.Object {
	labels := map[string]any{"app": name}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"replicas": int64(0),
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
			},
		},
	}}
}

// widgets registers a kind of the test's own, in a group of the namespace's name, and returns a handle on its objects.
// The client has discovered the server before.
func widgets(t *testing.T, client *dynamic.Client, namespace string) *dynamic.Resource {
	t.Helper()
	group := namespace + ".example.com"
	register(t, client, group)
	removed(t, resource(t, client, "crd"), "widgets."+group)
	return resource(t, client, "widgets."+group).Namespace(namespace)
}

// sharedWidgets returns a handle on objects of the same kind as widgets, of a definition that stays until the last test has
// ended: a server keeps the first writes of a new kind waiting for two seconds.
func sharedWidgets(t *testing.T, client *dynamic.Client, namespace string) *dynamic.Resource {
	t.Helper()
	if removeShared == nil {
		group := "shared." + namespace + ".example.com"
		register(t, client, group)
		cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
		require.NoError(t, err)
		shared = "widgets." + group
		removeShared = func(ctx context.Context) error { return remove(ctx, cfg, shared) }
	}
	return resource(t, client, shared).Namespace(namespace)
}

// removeShared removes the definition of sharedWidgets; nil unless it exists.
var (
	removeShared func(context.Context) error
	shared       string // its name
)

func remove(ctx context.Context, cfg *transport.Config, definition string) error {
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	definitions, err := client.Resource(ctx, "crd")
	if err != nil {
		return err
	}
	_, err = definitions.Delete(ctx, definition, nil)
	return err
}

// register creates the definition of kind Widget in a group.
func register(t *testing.T, client *dynamic.Client, group string) {
	t.Helper()
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	crds := resource(t, client, "crd")
	_, err := crds.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "widgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": []any{"wd"}},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{
					"status": map[string]any{},
					"scale":  map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
				},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": open, "status": open},
				}},
			}},
		},
	}}, nil)
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "widgets."+group, dynamic.Condition("Established"))
	require.NoError(t, err)
}
