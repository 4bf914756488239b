package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRestart_WaitsForRollouts(t *testing.T) {
	cluster.NeedComponents(t, cluster.ControllerManager, cluster.Scheduler, cluster.Nodes)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // earlier tests may have restarted the API server
	defer cancel()
	var cfg *transport.Config
	c := client.Connect(t, "admin", func(admin *transport.Config) { cfg = admin })
	deployments := client.Resource(t, c, "deployments.apps")
	const label = "rollout-example"
	namespaces := []string{client.NewNamespace(t, c), client.NewNamespace(t, c)}
	for _, namespace := range namespaces {
		for _, name := range []string{"web", "api", "other"} {
			labels := map[string]any{label: "yes"}
			if name == "other" {
				labels = map[string]any{}
			}
			pod := map[string]any{"app": name}
			_, err := deployments.Namespace(namespace).Create(ctx, &unstructured.Object{Object: map[string]any{
				"metadata": map[string]any{"name": name, "labels": labels},
				"spec": map[string]any{"replicas": 2, "selector": map[string]any{"matchLabels": pod}, "template": map[string]any{
					"metadata": map[string]any{"labels": pod},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "main:1"}}},
				}},
			}}, nil)
			require.NoError(t, err)
		}
	}

	var out bytes.Buffer
	require.NoError(t, restart(ctx, cfg, label+"=yes", &out))
	assert.Contains(t, out.String(), "4 of 4: ")
	for _, namespace := range namespaces {
		assert.Contains(t, out.String(), namespace+"/web, error: <nil>\n")
		for _, name := range []string{"web", "api", "other"} {
			live, err := deployments.Namespace(namespace).Get(ctx, name, nil)
			require.NoError(t, err)
			_, isRestarted, err := unstructured.Get[string](live, "spec", "template", "metadata", "annotations", "example.com/restartedAt")
			require.NoError(t, err)
			assert.Equal(t, name != "other", isRestarted, name)
			if isRestarted {
				updated, _, err := unstructured.Get[int64](live, "status", "updatedReplicas")
				require.NoError(t, err)
				assert.Equal(t, int64(2), updated, name)
				ready, err := deployments.Namespace(namespace).Wait(ctx, name, dynamic.Ready())
				require.NoError(t, err)
				assert.Equal(t, live.GetGeneration(), ready.GetGeneration())
			}
		}
	}
}
