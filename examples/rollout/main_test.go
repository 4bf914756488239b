package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRollout_PrintsProgress(t *testing.T) {
	cluster.NeedComponents(t, cluster.ControllerManager, cluster.Scheduler, cluster.Nodes)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // earlier tests may have restarted the API server
	defer cancel()
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	deployments := client.Resource(t, admin, "deployments.apps").Namespace(namespace)
	labels := map[string]any{"app": "web"}
	_, err := deployments.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"replicas": int64(2), "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
		}},
	}}, nil)
	require.NoError(t, err)
	before, err := deployments.Wait(ctx, "web", dynamic.Ready())
	require.NoError(t, err)

	rollout := client.Program(t, namespace)
	output, err := rollout(ctx, "", "web")
	require.NoError(t, err)
	assert.Regexp(t, `(?s)^it is InProgress: .* replicas .*\ndone\n$`, output)
	after, err := deployments.Get(ctx, "web", nil)
	require.NoError(t, err)
	assert.Equal(t, before.GetGeneration()+1, after.GetGeneration())
	updated, _, err := unstructured.Get[int64](after, "status", "updatedReplicas")
	require.NoError(t, err)
	assert.Equal(t, int64(2), updated)

	_, err = rollout(ctx, "", "none")
	require.ErrorContains(t, err, `deployments.apps "none" not found`)
}
