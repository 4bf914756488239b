package cache_test

import (
	"testing"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/require"
)

// define makes a kind of objects that are free in their form, and waits until the server serves it.
func define(t *testing.T, crds *dynamic.Resource) {
	t.Helper()
	_, err := crds.Create(t.Context(), &object{Object: map[string]any{
		"metadata": map[string]any{"name": "notes.storm.example.com"},
		"spec": map[string]any{
			"group": "storm.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "notes", "kind": "Note"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}, nil)
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "notes.storm.example.com", dynamic.Condition("Established"))
	require.NoError(t, err)
}

// defined gives a handle on the kind once the server tells of it, which may be a moment after it is Established.
func defined(t *testing.T) *dynamic.Resource {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	var notes *dynamic.Resource
	require.Eventually(t, func() bool {
		notes, err = client.Resource(t.Context(), "notes.storm.example.com")
		return err == nil
	}, patience, 50*time.Millisecond)
	return notes
}

// remove deletes the kind and waits until it is gone.
func remove(t *testing.T, crds *dynamic.Resource) {
	t.Helper()
	_, err := crds.Delete(t.Context(), "notes.storm.example.com", nil)
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "notes.storm.example.com", dynamic.Gone())
	require.NoError(t, err)
}
