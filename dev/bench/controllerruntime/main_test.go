//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"), // runs as long as the process
		// controller-runtime's cache leaves it after a watch of metadata
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
		// connections stay open until the program ends
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*http2ClientConn).readLoop"),
	)
}

func TestTasks_ReadEachPod(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	pods, err := admin.Resource(t.Context(), "pods")
	require.NoError(t, err)
	const count = 3
	for range count {
		_, err := pods.Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: measure.NewPod()}, nil)
		require.NoError(t, err)
	}
	for _, task := range []string{
		"cache", "cache-metadata", "cache-typed",
		"manager-unstructured", "manager-metadata", "manager-typed",
		"manager-unstructured-anykind", "manager-metadata-anykind", "manager-typed-anykind",
	} {
		t.Run(task, func(t *testing.T) {
			settings := &measure.Settings{Task: task, Kubeconfig: cluster.Kubeconfig(t), Namespace: namespace, Count: count}
			tasks, err := prepare(t.Context(), settings)
			require.NoError(t, err)
			m := &measure.Meter{Settings: settings, Figures: measure.Figures{}}
			require.NoError(t, tasks[task](t.Context(), m))
			assert.True(t, m.Done(), "not each pod was read")
			assert.Contains(t, m.Figures, "held")
			m.Count++
			assert.False(t, m.Done(), "a pod was read twice")
		})
	}
}
