package metrics_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	ownctrl "github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/metrics/prommetrics"
	"github.com/anykind/anykind/transport"
)

// TestMetrics_SameAsControllerRuntime compares names, help, labels, kinds and buckets of package metrics.
func TestMetrics_SameAsControllerRuntime(t *testing.T) {
	registry := prometheus.NewRegistry()
	recordOwn(t, registry)
	crmetrics.RegisterRESTClientMetrics(crmetrics.MetricRequestLatency, crmetrics.MetricRateLimiterLatency, crmetrics.MetricRequestRetry)
	recordPeers(t)
	peers, ok := crmetrics.Registry.(prometheus.Collector)
	require.True(t, ok)
	own := descriptions(registry)
	var missing []string
	for _, series := range descriptions(peers) {
		if i := slices.Index(own, series); i >= 0 {
			own = slices.Delete(own, i, i+1)
		} else if name, _, _ := strings.Cut(strings.TrimPrefix(series, `Desc{fqName: "`), `"`); !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			missing = append(missing, name)
		}
	}
	assert.Equal(t, []string{ // no hook has these values
		"certwatcher_read_certificate_errors_total", "certwatcher_read_certificate_total",
		"controller_runtime_client_consistency_wait_duration_seconds", "controller_runtime_conversion_webhook_panics_total",
		"controller_runtime_reconcile_timeouts_total",
	}, missing)
	assert.Len(t, own, 2, "those of caches: %s", own)

	wantKinds := kindsAndBuckets(t, crmetrics.Registry)
	for name, kind := range kindsAndBuckets(t, registry) {
		if want, found := wantKinds[name]; found {
			assert.Equal(t, want, kind, name)
		} else {
			assert.Equal(t, "leader_election_master_status", name)
		}
	}
}

// recordOwn records a value of each series.
func recordOwn(t *testing.T, registry *prometheus.Registry) {
	t.Helper()
	m, err := prommetrics.New(registry)
	require.NoError(t, err)
	m.OnAttempt(t.Context(), transport.Attempt{URL: "https://server.test/api", Method: http.MethodGet, StatusCode: http.StatusOK, Number: 1})
	m.OnAttempt(t.Context(), transport.Attempt{URL: "https://server.test/api", Method: http.MethodGet, StatusCode: http.StatusOK, Number: 2})
	hooks := m.Controller("shops", nil)
	hooks.QueueMetrics(nil).OnNew(func() (sum, longest time.Duration) { return time.Second, time.Second })
	hooks.OnReconcile(ownctrl.ReconcileResult{Duration: time.Second})
	m.Leader("shop-operator")
	m.Webhook("/validate", http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/validate", nil))
}

// recordPeers lets client-go and controller-runtime record values.
func recordPeers(t *testing.T) {
	t.Helper()
	server := url.URL{Host: "server.test"}
	metrics.RequestResult.Increment(t.Context(), "200", "GET", server.Host)
	metrics.RequestRetry.IncrementRetry(t.Context(), "200", "GET", server.Host)
	metrics.RequestLatency.Observe(t.Context(), "GET", server, time.Second)
	metrics.RateLimiterLatency.Observe(t.Context(), "GET", server, time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	shops, err := controller.NewTypedUnmanaged("shops", controller.TypedOptions[string]{
		Reconciler: reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) {
			cancel()
			return reconcile.Result{}, nil
		}),
	})
	require.NoError(t, err)
	require.NoError(t, shops.Watch(source.TypedFunc[string](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[string]) error {
		queue.Add("web")
		return nil
	})))
	require.NoError(t, shops.Start(ctx))
	webhook, err := admission.StandaloneWebhook(&admission.Webhook{}, admission.StandaloneOptions{MetricsPath: "/validate"})
	require.NoError(t, err)
	webhook.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/validate", nil))
}

// descriptions returns the names, help texts and labels of all series.
func descriptions(collector prometheus.Collector) (all []string) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		collector.Describe(descs)
	}()
	for desc := range descs {
		all = append(all, desc.String())
	}
	slices.Sort(all)
	return all
}

// kindAndBuckets is a kind of metrics. A counter or gauge has no buckets.
type kindAndBuckets struct {
	kind    string
	buckets []float64
}

func kindsAndBuckets(t *testing.T, gatherer prometheus.Gatherer) map[string]kindAndBuckets {
	t.Helper()
	gathered, err := gatherer.Gather()
	require.NoError(t, err)
	kinds := map[string]kindAndBuckets{}
	for _, family := range gathered {
		of := kindAndBuckets{kind: family.GetType().String()}
		for _, bucket := range family.GetMetric()[0].GetHistogram().GetBucket() {
			of.buckets = append(of.buckets, bucket.GetUpperBound())
		}
		kinds[family.GetName()] = of
	}
	return kinds
}
