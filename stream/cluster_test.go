package stream_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/dynamic"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// patience is how long tests wait for what a real cluster does in its own time.
const patience = 2 * time.Minute

// connect returns a client of the sandbox, as one of its kubeconfig's contexts: admin, token or limited.
func connect(t testing.TB, kubeContext string) *dynamic.Client {
	t.Helper()
	return testclient.Connect(t, kubeContext)
}

// podsOf returns a handle on pods in a namespace of the test's own.
func podsOf(t testing.TB) *dynamic.Resource {
	t.Helper()
	cluster.NeedComponents(t, cluster.Nodes, cluster.ControllerManager, cluster.Scheduler)
	client := connect(t, "admin")
	namespaces, err := client.Resource(t.Context(), "namespaces")
	require.NoError(t, err)
	created, err := namespaces.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"generateName": "stream-"},
	}}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := namespaces.Delete(ctx, created.GetName(), nil)
		require.NoError(t, err)
	})
	// Without it no pod is admitted. The controller manager makes it in time, but not while it recovers from a restart.
	accounts, err := client.Resource(t.Context(), "serviceaccounts")
	require.NoError(t, err)
	_, err = accounts.Namespace(created.GetName()).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "default"},
	}}, nil)
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	pods, err := client.Resource(t.Context(), "pods")
	require.NoError(t, err)
	return pods.Namespace(created.GetName())
}

// run creates a pod with these containers and waits until it runs. One named terminal has one.
func run(t testing.TB, pods *dynamic.Resource, pod *unstructured.Object, containers ...string) {
	t.Helper()
	var list []any
	for _, name := range containers {
		list = append(list, map[string]any{"name": name, "image": "busybox", "stdin": true, "tty": name == "terminal"})
	}
	pod.Object["spec"] = map[string]any{"containers": list}
	name := pod.GetName()
	var err error
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		// The service account, without which no pod is admitted, comes a moment after its namespace.
		if _, err = pods.Create(t.Context(), pod, nil); err == nil {
			break
		}
		require.True(t, time.Now().Before(deadline), "creating the pod: %v", err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		found, err := pods.Get(t.Context(), name, nil)
		require.NoError(t, err)
		phase, _, err := unstructured.Get[string](found, "status", "phase")
		require.NoError(t, err)
		if phase == "Running" {
			return
		}
		require.True(t, time.Now().Before(deadline), "the pod is %s", phase)
	}
}

// named is a pod to run.
func named(name string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "labels": map[string]any{"app": "web"}},
	}}
}
