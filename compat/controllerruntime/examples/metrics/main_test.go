package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clientgoqueue "k8s.io/client-go/util/workqueue"
	_ "sigs.k8s.io/controller-runtime/pkg/controller" // registers the metrics of work queues
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"), // runs as long as the process
		// client-go's queue of the comparison ends its goroutines a moment after ShutDown
		goleak.IgnoreAnyFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
	)
}

// TestRun_CountsRequestsAndKeys fails the first reconcile of a ConfigMap.
func TestRun_CountsRequestsAndKeys(t *testing.T) {
	admin := client.Connect(t, "admin")
	configMaps := client.Resource(t, admin, "configmaps").Namespace(client.NewNamespace(t, admin))
	created, err := configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}, nil)
	require.NoError(t, err)
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "admin"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	done := make(chan struct{})
	reconcile := func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
		if key != cache.KeyOf(created) {
			return 0, nil
		}
		switch calls.Add(1) {
		case 1:
			return 0, errors.New("the first reconcile fails")
		case 2:
			close(done)
		}
		return 0, nil
	}
	registry := prometheus.NewRegistry()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, cfg, registry, reconcile) }()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		assert.Fail(t, "not reconciled")
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	got := gather(t, registry)
	assert.GreaterOrEqual(t, got["rest_client_requests_total"].sum, 2.0)
	assert.InDelta(t, got["rest_client_requests_total"].sum, got["rest_client_request_duration_seconds"].sum, 0)
	assert.GreaterOrEqual(t, got["workqueue_adds_total"].sum, 2.0)
	assert.GreaterOrEqual(t, got["workqueue_queue_duration_seconds"].sum, 2.0)
	assert.GreaterOrEqual(t, got["workqueue_work_duration_seconds"].sum, 2.0)
	assert.InDelta(t, 1, got["workqueue_retries_total"].sum, 0)
	want := gather(t, peerMetrics(t))
	for name, own := range got {
		assert.Equal(t, want[name].kind, own.kind, name)
		assert.Equal(t, want[name].labels, own.labels, name)
	}
	assert.Len(t, got, 9)
}

// peerMetrics returns the registry of controller-runtime after a request of client-go and a key of its work queue.
func peerMetrics(t *testing.T) prometheus.Gatherer {
	t.Helper()
	metrics.RegisterRESTClientMetrics(metrics.MetricRequestLatency)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }))
	defer server.Close()
	peer, err := discovery.NewDiscoveryClientForConfigAndClient(&rest.Config{Host: server.URL}, server.Client())
	require.NoError(t, err)
	_, err = peer.ServerVersion()
	require.NoError(t, err)
	queue := clientgoqueue.NewTypedRateLimitingQueueWithConfig(
		clientgoqueue.DefaultTypedControllerRateLimiter[string](), clientgoqueue.TypedRateLimitingQueueConfig[string]{Name: "configmap"},
	)
	queue.AddRateLimited("web")
	key, _ := queue.Get()
	queue.Done(key)
	queue.ShutDown()
	return metrics.Registry
}

// family is a metric without its values.
type family struct {
	kind   string
	labels []string
	sum    float64 // of the values, or of the numbers of observations
}

func gather(t *testing.T, gatherer prometheus.Gatherer) map[string]family {
	t.Helper()
	gathered, err := gatherer.Gather()
	require.NoError(t, err)
	families := map[string]family{}
	for _, g := range gathered {
		f := family{kind: g.GetType().String()}
		for _, metric := range g.GetMetric() {
			f.labels = nil
			for _, label := range metric.GetLabel() {
				f.labels = append(f.labels, label.GetName())
			}
			f.sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
		families[g.GetName()] = f
	}
	return families
}
