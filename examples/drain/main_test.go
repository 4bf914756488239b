package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is long, because earlier tests may have restarted the API server, which delays controllers.
const patience = 3 * time.Minute

// workload is a Deployment and a DaemonSet with pods on one node, and a budget that allows no eviction of the
// Deployment's.
const workload = `[
	{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},
		"template":{"metadata":{"labels":{"app":"web"}},"spec":{"nodeSelector":{"drained":"yes"},"terminationGracePeriodSeconds":1,
			"containers":[{"name":"web","image":"web:1"}]}}}},
	{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent"},"spec":{"selector":{"matchLabels":{"app":"agent"}},
		"template":{"metadata":{"labels":{"app":"agent"}},"spec":{"nodeSelector":{"drained":"yes"},"containers":[{"name":"agent","image":"agent:1"}]}}}},
	{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"web"},"spec":{"minAvailable":2,"selector":{"matchLabels":{"app":"web"}}}}
]`

func TestDrain_RespectsBudgetsAndDaemonSets(t *testing.T) {
	cluster.NeedComponents(t, cluster.ControllerManager, cluster.Scheduler, cluster.Nodes)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var refusals atomic.Int32
	c := client.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.OnAttempt = func(_ context.Context, attempt transport.Attempt) {
			if attempt.StatusCode == http.StatusTooManyRequests && refusals.Add(1) == 3 {
				cancel() // one of the two pods was refused twice
			}
		}
	})
	nodes, node := labeledNode(t, c)
	pods, namespace := start(t, c)
	waitForRunning(t, pods, "app in (web,agent)", 3)

	var out bytes.Buffer
	require.NoError(t, cordon(t.Context(), c, node, true, &out))
	cordoned, err := nodes.Get(t.Context(), node, nil)
	require.NoError(t, err)
	unschedulable, _, err := unstructured.Get[bool](cordoned, "spec", "unschedulable")
	require.NoError(t, err)
	assert.True(t, unschedulable)

	// Two of two pods must stay: the error of drain has the reason.
	budgets := client.Resource(t, c, "pdb").Namespace(namespace)
	waitForBudget(t, budgets)
	err = drain(ctx, c, node, &out)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "The disruption budget web needs 2 healthy pods and has 2 currently")

	_, err = budgets.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`), nil)
	require.NoError(t, err)
	out.Reset()
	require.NoError(t, drain(t.Context(), c, node, &out))
	assert.Contains(t, out.String(), "stays: DaemonSet agent would create it again")
	assert.Contains(t, out.String(), fmt.Sprintf("node %s: 2 pods evicted\n", node))
	waitForRunning(t, pods, "app=agent", 1)
	left, err := pods.ListPage(t.Context(), &metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(t, err)
	assert.Len(t, left.Items, 1, "the agent's pod")

	require.NoError(t, cordon(t.Context(), c, node, false, &out))
	waitForRunning(t, pods, "app=web", 2)
}

func TestSkipReason_MirrorPod(t *testing.T) {
	mirror := &unstructured.Object{Object: map[string]any{}}
	assert.Empty(t, skipReason(mirror))
	mirror.SetAnnotations(map[string]string{"kubernetes.io/config.mirror": "hash"})
	assert.Equal(t, "mirror pod", skipReason(mirror))
}

// labeledNode labels a node for this test's pods.
func labeledNode(t *testing.T, c *dynamic.Client) (nodes *dynamic.Resource, name string) {
	t.Helper()
	nodes = client.Resource(t, c, "nodes")
	page, err := nodes.ListPage(t.Context(), nil)
	require.NoError(t, err)
	require.NotEmpty(t, page.Items)
	name = page.Items[0].GetName()
	label := func(ctx context.Context, value string) {
		_, err := nodes.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"drained":%s}}}`, value), nil)
		require.NoError(t, err)
	}
	label(t.Context(), `"yes"`)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		label(ctx, "null")
		require.NoError(t, cordon(ctx, c, name, false, &bytes.Buffer{}))
	})
	return nodes, name
}

// start creates the workload in a new namespace and returns a handle on the pods there, and the namespace.
func start(t *testing.T, c *dynamic.Client) (pods *dynamic.Resource, namespace string) {
	t.Helper()
	namespace = client.NewNamespace(t, c)
	var objects []map[string]any
	require.NoError(t, json.Unmarshal([]byte(workload), &objects))
	for _, fields := range objects {
		obj := &unstructured.Object{Object: fields}
		resource, err := c.ForObject(t.Context(), obj)
		require.NoError(t, err)
		_, err = resource.Namespace(namespace).Create(t.Context(), obj, nil)
		require.NoError(t, err)
	}
	return client.Resource(t, c, "pods").Namespace(namespace), namespace
}

// waitForRunning waits until that number of pods run.
func waitForRunning(t *testing.T, pods *dynamic.Resource, selector string, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		page, err := pods.ListPage(t.Context(), &metav1.ListOptions{LabelSelector: selector, FieldSelector: "status.phase=Running"})
		require.NoError(t, err)
		if len(page.Items) == want {
			return
		}
		require.True(t, time.Now().Before(deadline), "%d of %d pods run", len(page.Items), want)
	}
}

// waitForBudget waits until the budget's status counts both pods.
func waitForBudget(t *testing.T, budgets *dynamic.Resource) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		budget, err := budgets.Get(t.Context(), "web", nil)
		require.NoError(t, err)
		healthy, _, err := unstructured.Get[int64](budget, "status", "currentHealthy")
		require.NoError(t, err)
		if healthy == 2 {
			return
		}
		require.True(t, time.Now().Before(deadline), "%d of 2 pods are healthy", healthy)
	}
}
