package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// clusterExecutors run commands in a pod of a real server, whose fake node runs them on this machine.
func clusterExecutors(b *testing.B) map[string]execute {
	cluster.NeedComponents(b, cluster.Nodes, cluster.ControllerManager, cluster.Scheduler)
	kubeconfig := cluster.Kubeconfig(b)
	cfg, err := transport.Load(b.Context(), &transport.LoadOptions{Path: kubeconfig})
	require.NoError(b, err)
	client, err := dynamic.Connect(b.Context(), cfg)
	require.NoError(b, err)
	b.Cleanup(client.Close)
	pods, err := client.Resource(b.Context(), "pods")
	require.NoError(b, err)
	pod, err := pods.Create(b.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"generateName": "bench-"},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
	}}, nil)
	require.NoError(b, err)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := pods.Delete(ctx, pod.GetName(), nil)
		require.NoError(b, err)
	})
	require.Eventually(b, func() bool {
		now, err := pods.Get(b.Context(), pod.GetName(), nil)
		require.NoError(b, err)
		phase, _, err := unstructured.Get[string](now, "status", "phase")
		return err == nil && phase == "Running"
	}, 2*time.Minute, 100*time.Millisecond)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(b, err)
	return executors(b, config, pods.Conn(), pod.GetName())
}

// BenchmarkExecClusterGigabyte is BenchmarkExecGigabyte through a real API server and node.
func BenchmarkExecClusterGigabyte(b *testing.B) { sides(b, clusterExecutors(b), gigabyte) }

// BenchmarkExecClusterShort is BenchmarkExecShort through a real API server and node.
func BenchmarkExecClusterShort(b *testing.B) { sides(b, clusterExecutors(b), short) }
