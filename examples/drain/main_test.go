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

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is long: the tests before this one may have restarted the API server, and controllers come back in their own time.
const patience = 3 * time.Minute

// workload is a Deployment and a DaemonSet whose pods run on the node only, and a budget that lets none of the
// Deployment's go.
const workload = `[
	{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},
		"template":{"metadata":{"labels":{"app":"web"}},"spec":{"nodeSelector":{"drained":"yes"},"terminationGracePeriodSeconds":1,
			"containers":[{"name":"web","image":"web:1"}]}}}},
	{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent"},"spec":{"selector":{"matchLabels":{"app":"agent"}},
		"template":{"metadata":{"labels":{"app":"agent"}},"spec":{"nodeSelector":{"drained":"yes"},"containers":[{"name":"agent","image":"agent:1"}]}}}},
	{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"web"},"spec":{"minAvailable":2,"selector":{"matchLabels":{"app":"web"}}}}
]`

func TestADrainRespectsBudgetsAndLeavesDaemonSetsAlone(t *testing.T) {
	cluster.NeedComponents(t, cluster.ControllerManager, cluster.Scheduler, cluster.Nodes)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	var refusals atomic.Int32
	client := connect(t, func(_ context.Context, attempt transport.Attempt) {
		if attempt.Code == http.StatusTooManyRequests && refusals.Add(1) == 3 {
			giveUp() // of two pods, one has been refused before
		}
	})
	nodes, node := nodeOfItsOwn(t, client)
	pods := start(t, client)
	running(t, pods, "app in (web,agent)", 3)

	var out bytes.Buffer
	require.NoError(t, cordon(t.Context(), client, node, true, &out))
	closed, err := nodes.Get(t.Context(), node, nil)
	require.NoError(t, err)
	unschedulable, _, err := unstructured.Get[bool](closed, "spec", "unschedulable")
	require.NoError(t, err)
	assert.True(t, unschedulable)

	// Two of two must stay: the drain says so when its time is over.
	budgets := resource(t, client, "pdb").In(pods.namespace)
	workedOut(t, budgets)
	err = drain(ctx, client, node, &out)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "The disruption budget web needs 2 healthy pods and has 2 currently")

	_, err = budgets.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`), nil)
	require.NoError(t, err)
	out.Reset()
	require.NoError(t, drain(t.Context(), client, node, &out))
	assert.Contains(t, out.String(), "stays: its DaemonSet agent would bring it back")
	assert.Contains(t, out.String(), fmt.Sprintf("node %s: 2 pods had to go\n", node))
	running(t, pods, "app=agent", 1)
	left, err := pods.ListPage(t.Context(), &metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	require.NoError(t, err)
	assert.Len(t, left.Items, 1, "the agent's pod")

	require.NoError(t, cordon(t.Context(), client, node, false, &out))
	running(t, pods, "app=web", 2)
}

func TestAMirrorPodStays(t *testing.T) {
	mirror := &unstructured.Object{Object: map[string]any{}}
	assert.Empty(t, stays(mirror))
	mirror.SetAnnotations(map[string]string{"kubernetes.io/config.mirror": "hash"})
	assert.Equal(t, "it is the node's own", stays(mirror))
}

func connect(t *testing.T, observe func(context.Context, transport.Attempt)) *dynamic.Client {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	cfg.Observe = observe
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func resource(t *testing.T, client *dynamic.Client, name string) *dynamic.Resource {
	t.Helper()
	found, err := client.Resource(t.Context(), name)
	require.NoError(t, err)
	return found
}

// nodeOfItsOwn labels a node for this test alone.
func nodeOfItsOwn(t *testing.T, client *dynamic.Client) (nodes *dynamic.Resource, name string) {
	t.Helper()
	nodes = resource(t, client, "nodes")
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
		require.NoError(t, cordon(ctx, client, name, false, &bytes.Buffer{}))
	})
	return nodes, name
}

// podsOf are the pods of the test's own namespace.
type podsOf struct {
	*dynamic.Resource
	namespace string
}

// start creates the workload in a namespace of its own, which goes when the test ends.
func start(t *testing.T, client *dynamic.Client) podsOf {
	t.Helper()
	namespaces := resource(t, client, "namespaces")
	created, err := namespaces.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"generateName": "drain-"}}}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for {
			_, err := namespaces.Delete(ctx, created.GetName(), nil)
			if apierrors.IsNotFound(err) {
				return // with its pods
			}
			if !apierrors.IsConflict(err) {
				require.NoError(t, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	var objects []map[string]any
	require.NoError(t, json.Unmarshal([]byte(workload), &objects))
	for _, fields := range objects {
		obj := &unstructured.Object{Object: fields}
		of, err := client.Of(t.Context(), obj)
		require.NoError(t, err)
		_, err = of.In(created.GetName()).Create(t.Context(), obj, nil)
		require.NoError(t, err)
	}
	return podsOf{resource(t, client, "pods").In(created.GetName()), created.GetName()}
}

// running waits until so many pods run.
func running(t *testing.T, pods podsOf, selector string, want int) {
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

// workedOut waits until the budget has counted the pods.
func workedOut(t *testing.T, budgets *dynamic.Resource) {
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
