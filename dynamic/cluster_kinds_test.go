package dynamic_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// TestClient_PreferredResourcesAreAllListed takes kubectl for an oracle, and lists every resource through its handle.
func TestClient_PreferredResourcesAreAllListed(t *testing.T) {
	client := connect(t, "admin")
	for _, scope := range []struct {
		flag       string
		namespaced *bool
	}{{"--namespaced=true", new(true)}, {"--namespaced=false", new(false)}} {
		output, err := exec.CommandContext(t.Context(), cluster.Kubectl(t), "--kubeconfig", cluster.Kubeconfig(t), "--cache-dir", t.TempDir(),
			"api-resources", "-o", "name", "--verbs=list", scope.flag).Output()
		require.NoError(t, err)
		_, err = client.Discovery().Refresh(t.Context())
		require.NoError(t, err)
		resources, err := client.PreferredResources(t.Context(), &discovery.ResourceFilter{Verbs: []string{"list"}, Namespaced: scope.namespaced})
		require.NoError(t, err)
		var names []string
		for _, r := range resources {
			names = append(names, r.String())
			_, err := r.AllNamespaces().ListPage(t.Context(), nil)
			assert.NoError(t, err, r)
		}
		assert.ElementsMatch(t, strings.Fields(string(output)), names)
	}
}

func TestClient_WaitForKindsOfLaterDefinitions(t *testing.T) {
	client, namespace := newNamespace(t)
	definitions := resource(t, client, "crd")
	group := namespace + ".example.com"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	type result struct {
		resources []*dynamic.Resource
		err       error
	}
	byName := make(chan result, 1)
	byKind := make(chan result, 1)
	go func() {
		resources, err := client.WaitForResources(ctx, "lamps."+group, "bulbs.v1."+group, "pods")
		byName <- result{resources, err}
	}()
	go func() {
		resources, err := client.WaitForKinds(ctx, schema.GroupVersionKind{Group: group, Kind: "Bulb"}, schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Lamp"})
		byKind <- result{resources, err}
	}()
	for _, kind := range []string{"Lamp", "Bulb"} {
		plural := strings.ToLower(kind) + "s"
		_, err := definitions.Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": plural + "." + group},
			"spec": map[string]any{
				"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
			},
		}}, nil)
		require.NoError(t, err)
		removed(t, definitions, plural+"."+group)
	}
	for waited, want := range map[chan result][]string{byName: {"lamps." + group, "bulbs." + group, "pods"}, byKind: {"bulbs." + group, "lamps." + group}} {
		got := <-waited
		require.NoError(t, got.err)
		var names []string
		for _, r := range got.resources {
			names = append(names, r.String())
		}
		assert.Equal(t, want, names)
	}
}
