package dynamic_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// The tests of this file run before those that restart the API server: controllers take up to half a minute to come back.

// TestWait_Controllers waits like kubectl rollout status and kubectl delete --wait.
func TestWait_Controllers(t *testing.T) {
	cluster.NeedComponents(t, cluster.ControllerManager, cluster.Scheduler, cluster.Nodes)
	client, namespace := newNamespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	sets := resource(t, client, "sts").Namespace(namespace)
	pods := resource(t, client, "pods").Namespace(namespace)
	set := deployment("web")
	set.SetAPIVersion("apps/v1")
	set.SetKind("StatefulSet")
	require.NoError(t, unstructured.Set(set, 1, "spec", "replicas"))
	require.NoError(t, unstructured.Set(set, "web", "spec", "serviceName"))
	_, err := sets.Create(ctx, set, nil)
	require.NoError(t, err)

	pod, err := pods.Wait(ctx, "web-0", dynamic.Condition("Ready"), dynamic.FieldEquals("status.phase", "Running"))
	require.NoError(t, err)
	_, err = sets.Wait(ctx, "web", dynamic.FieldEquals("status.readyReplicas", 1))
	require.NoError(t, err)

	_, err = pods.Delete(ctx, "web-0", nil)
	require.NoError(t, err)
	again, err := pods.Wait(ctx, "web-0", dynamic.Deleted(pod.GetUID()), dynamic.Condition("Ready"))
	require.NoError(t, err)
	assert.NotEqual(t, pod.GetUID(), again.GetUID(), "the controller made another pod of that name")

	deployments := resource(t, client, "deploy").Namespace(namespace)
	_, err = deployments.Create(ctx, deployment("front"), nil)
	require.NoError(t, err)
	_, err = deployments.Wait(ctx, "front", dynamic.Condition("Available"))
	require.NoError(t, err)
	_, err = deployments.Delete(ctx, "front", &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
	require.NoError(t, err)
	_, err = deployments.Wait(ctx, "front", dynamic.Deleted())
	require.NoError(t, err)
}
