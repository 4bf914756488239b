package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/metrics"
	"github.com/anykind/anykind/metrics/otelmetrics"
	"github.com/anykind/anykind/metrics/prommetrics"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// libraries create metrics. text returns the lines of the values in Prometheus' format, without buckets.
var libraries = map[string]func(t *testing.T) (m *metrics.Metrics, text func() []string){
	"Prometheus": func(t *testing.T) (*metrics.Metrics, func() []string) {
		registry := prometheus.NewPedanticRegistry()
		m, err := prommetrics.New(registry)
		require.NoError(t, err)
		return m, func() []string { return page(t, registry) }
	},
	"OpenTelemetry": func(t *testing.T) (*metrics.Metrics, func() []string) {
		reader := sdkmetric.NewManualReader()
		m, err := otelmetrics.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
		require.NoError(t, err)
		return m, func() []string { return collect(t, reader) }
	},
}

// page returns the lines of /metrics.
func page(t *testing.T, registry *prometheus.Registry) (lines []string) {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// collect returns the values of an OpenTelemetry reader like page.
func collect(t *testing.T, reader *sdkmetric.ManualReader) (lines []string) {
	t.Helper()
	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &collected))
	add := func(name string, attributes attribute.Set, value any) {
		labels := ""
		if attributes.Len() > 0 {
			var pairs []string
			for _, label := range attributes.ToSlice() {
				pairs = append(pairs, fmt.Sprintf("%s=%q", label.Key, label.Value.AsString()))
			}
			labels = "{" + strings.Join(pairs, ",") + "}"
		}
		lines = append(lines, fmt.Sprint(name, labels, " ", value))
	}
	for _, series := range collected.ScopeMetrics[0].Metrics {
		assert.Equal(t, strings.HasSuffix(series.Name, "_seconds"), series.Unit == "s", series.Name)
		switch data := series.Data.(type) {
		case metricdata.Sum[float64]:
			for _, point := range data.DataPoints {
				add(series.Name, point.Attributes, point.Value)
			}
		case metricdata.Gauge[float64]:
			for _, point := range data.DataPoints {
				add(series.Name, point.Attributes, point.Value)
			}
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				add(series.Name+"_sum", point.Attributes, point.Sum)
				add(series.Name+"_count", point.Attributes, point.Count)
			}
		default:
			assert.Fail(t, "unexpected kind", "%s: %T", series.Name, data)
		}
	}
	return lines
}

// connect returns a handle on deployments with one object. The first read of the object is rejected. Changes are sent after 5 and 6 seconds.
func connect(t *testing.T, m *metrics.Metrics) *dynamic.Resource {
	t.Helper()
	web := func(version string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","uid":"web","resourceVersion":"` + version + `"}}`
	}
	server := scripted.New("apps/v1 deployments deployment Deployment deploy")
	server.Handle("WATCH /apis/apps/v1/deployments", func(w http.ResponseWriter, r *http.Request) {
		events := make(chan string, 4)
		events <- scripted.Event("ADDED", web("1")) + scripted.InitialEventsEnd("apps/v1", "Deployment", "4200000000000000007")
		time.AfterFunc(5*time.Second, func() { events <- scripted.Event("MODIFIED", web("4200000000000000008")) })
		time.AfterFunc(6*time.Second, func() { events <- scripted.Event("MODIFIED", web("4200000000000000009")) })
		scripted.WatchChannel(events)(w, r)
	})
	server.Handle("GET /apis/apps/v1/namespaces/shop/deployments/web", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "1")
		scripted.Status(http.StatusTooManyRequests, "TooManyRequests")(w, r)
	}, scripted.JSON(web("1")))
	client := dynamic.New(scripted.Connect(t, server, &transport.Options{OnAttempt: m.OnAttempt}), nil)
	t.Cleanup(client.Close)
	deployments, err := client.Resource(t.Context(), "deploy")
	require.NoError(t, err)
	_, err = deployments.Namespace("shop").Get(t.Context(), "web", nil)
	require.NoError(t, err)
	return deployments.AllNamespaces()
}

// reconcile fails, panics, succeeds with and without a delay, and fails for good. Its sixth call lasts until ctx ends.
func reconcile() controller.ReconcileFunc {
	calls := 0
	return func(ctx context.Context, _ types.NamespacedName) (time.Duration, error) {
		time.Sleep(250 * time.Millisecond)
		switch calls++; calls {
		case 1:
			return time.Hour, errors.New("not yet")
		case 2:
			panic("a defect")
		case 3:
			return time.Second, nil
		case 4:
			return 0, nil
		case 5:
			return 0, controller.TerminalError(errors.New("never"))
		}
		<-ctx.Done()
		return 0, ctx.Err()
	}
}

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"7","operation":"CREATE","object":{"apiVersion":"v1","kind":"Pod"}}}`

// sendReviews sends a request of a wrong type to a webhook, a review that panics, and a review that lasts until the end.
func sendReviews(ctx context.Context, m *metrics.Metrics) {
	calls := 0
	validate := webhook.Validate(func(ctx context.Context, _ *webhook.Request[unstructured.Object]) error {
		if calls++; calls == 1 {
			panic("a defect")
		}
		<-ctx.Done()
		return nil
	}, &webhook.Options{OnRequest: m.OnWebhookRequest, Logger: slog.New(slog.DiscardHandler)})
	handler := m.Webhook("/validate", validate)
	for _, contentType := range []string{"text/plain", "application/json", "application/json"} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/validate", strings.NewReader(review))
		r.Header.Set("Content-Type", contentType)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
}

func TestMetrics_Values(t *testing.T) {
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, text := library(t)
				deployments := connect(t, m)
				ctx, cancel := context.WithCancel(t.Context())
				c := cache.New(deployments, nil)
				defer metrics.AddCache(m, "operator", c)()
				go func() { _ = c.Run(ctx) }()
				results := 0
				opts := m.Controller("", &controller.Options{
					Workers: 2, Queue: workqueue.Options{RateLimiter: func(int) time.Duration { return time.Second }},
					OnReconcile: func(controller.ReconcileResult) { results++ },
					Logger:      slog.New(slog.DiscardHandler),
				})
				go func() { _ = controller.Run(ctx, c, reconcile(), opts) }()
				leader := m.Leader("shop-operator")
				go func() { assert.NoError(t, leader(ctx)) }()
				go sendReviews(ctx, m)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				got := text()
				isZero := func(line string) bool { return strings.HasSuffix(line, " 0") }
				assert.Equal(t, values, strings.Join(slices.Sorted(slices.Values(slices.DeleteFunc(got, isZero))), "\n"))
				cancel()
				time.Sleep(time.Minute) // more than the grace
				assert.Contains(t, text(), `leader_election_master_status{name="shop-operator"} 0`)
				assert.Contains(t, text(), `controller_runtime_active_workers{controller="deployment"} 0`)
				assert.Equal(t, 6, results)
			})
		})
	}
}

// values are the nonzero values ten seconds after the start.
const values = `controller_runtime_active_workers{controller="deployment"} 1
controller_runtime_max_concurrent_reconciles{controller="deployment"} 2
controller_runtime_reconcile_errors_total{controller="deployment"} 3
controller_runtime_reconcile_panics_total{controller="deployment"} 1
controller_runtime_reconcile_time_seconds_count{controller="deployment"} 5
controller_runtime_reconcile_time_seconds_sum{controller="deployment"} 1.25
controller_runtime_reconcile_total{controller="deployment",result="error"} 3
controller_runtime_reconcile_total{controller="deployment",result="requeue_after"} 1
controller_runtime_reconcile_total{controller="deployment",result="success"} 1
controller_runtime_terminal_reconcile_errors_total{controller="deployment"} 1
controller_runtime_webhook_latency_seconds_count{webhook="/validate"} 2
controller_runtime_webhook_panics_total 1
controller_runtime_webhook_requests_in_flight{webhook="/validate"} 1
controller_runtime_webhook_requests_total{code="200",webhook="/validate"} 1
controller_runtime_webhook_requests_total{code="415",webhook="/validate"} 1
informer_staleness_seconds{group="apps",name="operator",resource="deployments",version="v1"} 4
informer_store_resource_version{group="apps",name="operator",resource="deployments",version="v1"} 9
leader_election_master_status{name="shop-operator"} 1
rest_client_rate_limiter_duration_seconds_count{host="server.test",verb="GET"} 4
rest_client_request_duration_seconds_count{host="server.test",verb="GET"} 5
rest_client_request_retries_total{code="200",host="server.test",verb="GET"} 1
rest_client_requests_total{code="200",host="server.test",method="GET"} 4
rest_client_requests_total{code="429",host="server.test",method="GET"} 1
workqueue_adds_total{controller="deployment",name="deployment"} 6
workqueue_longest_running_processor_seconds{controller="deployment",name="deployment"} 4
workqueue_queue_duration_seconds_count{controller="deployment",name="deployment"} 6
workqueue_retries_total{controller="deployment",name="deployment"} 3
workqueue_unfinished_work_seconds{controller="deployment",name="deployment"} 4
workqueue_work_duration_seconds_count{controller="deployment",name="deployment"} 5
workqueue_work_duration_seconds_sum{controller="deployment",name="deployment"} 1.25`

func TestAddCache_LaterCacheReplacesFirst(t *testing.T) {
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, text := library(t)
				deployments := connect(t, m)
				synced := func() *cache.Cache[unstructured.Object] {
					c := cache.New(deployments, nil)
					go func() { _ = c.Run(t.Context()) }()
					require.NoError(t, c.WaitForSync(t.Context()))
					return c
				}
				staleness := func() (found []string) {
					for _, line := range text() {
						if value, ok := strings.CutPrefix(line, `informer_staleness_seconds{group="apps",name="a",resource="deployments",version="v1"} `); ok {
							found = append(found, value)
						}
					}
					return found
				}
				metrics.AddCache(m, "a", cache.New(deployments, nil)) // not synced
				assert.Empty(t, staleness())
				removeFirst := metrics.AddCache(m, "a", synced())
				time.Sleep(time.Second)
				removeSecond := metrics.AddCache(m, "a", synced())
				time.Sleep(time.Second)
				removeFirst()
				assert.Equal(t, []string{"1"}, staleness())
				removeSecond()
				assert.Empty(t, staleness())
			})
		})
	}
}

func TestController_ZeroBeforeFirstReconcile(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := prommetrics.New(registry)
	require.NoError(t, err)
	workqueue.New[string](&workqueue.Options{Metrics: m.Controller("shops", nil).QueueMetrics(nil)})
	m.Webhook("/validate", http.NotFoundHandler())
	got := map[string]bool{}
	for _, line := range page(t, registry) {
		got[line] = true
	}
	assert.Equal(t, []string{
		`controller_runtime_active_workers{controller="shops"} 0`,
		`controller_runtime_max_concurrent_reconciles{controller="shops"} 1`,
		`controller_runtime_reconcile_errors_total{controller="shops"} 0`,
		`controller_runtime_reconcile_panics_total{controller="shops"} 0`,
		`controller_runtime_reconcile_total{controller="shops",result="error"} 0`,
		`controller_runtime_reconcile_total{controller="shops",result="requeue"} 0`,
		`controller_runtime_reconcile_total{controller="shops",result="requeue_after"} 0`,
		`controller_runtime_reconcile_total{controller="shops",result="success"} 0`,
		`controller_runtime_terminal_reconcile_errors_total{controller="shops"} 0`,
	}, slices.Sorted(maps.Keys(got))[:9])
	assert.True(t, got[`controller_runtime_webhook_requests_total{code="500",webhook="/validate"} 0`])
	assert.True(t, got[`workqueue_longest_running_processor_seconds{controller="shops",name="shops"} 0`])
}

// TestMetrics_Webhook_ResponseCode counts requests by the code of the response. A panic has none, as in promhttp.
func TestMetrics_Webhook_ResponseCode(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    []string
	}{
		"without a response": {func(http.ResponseWriter, *http.Request) {}, []string{`{code="200",webhook="/a"} 1`, `{code="500",webhook="/a"} 0`}},
		"a later code": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("{}"))
			w.WriteHeader(http.StatusInternalServerError)
		}, []string{`{code="200",webhook="/a"} 1`, `{code="500",webhook="/a"} 0`}},
		"a panic": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{`{code="200",webhook="/a"} 0`, `{code="500",webhook="/a"} 0`}},
	} {
		registry := prometheus.NewPedanticRegistry()
		m, err := prommetrics.New(registry)
		require.NoError(t, err)
		func() {
			defer func() { _ = recover() }()
			m.Webhook("/a", tc.handler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a", http.NoBody))
		}()
		var got []string
		for _, line := range page(t, registry) {
			if value, isTotal := strings.CutPrefix(line, "controller_runtime_webhook_requests_total"); isTotal {
				got = append(got, value)
			}
			assert.NotEqual(t, `controller_runtime_webhook_requests_in_flight{webhook="/a"} 1`, line, name)
		}
		assert.Equal(t, tc.want, got, name)
	}
}

func TestNew_RegisteredTwice(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, err := prommetrics.New(registry)
	require.NoError(t, err)
	_, err = prommetrics.New(registry)
	var registered prometheus.AlreadyRegisteredError
	assert.ErrorAs(t, err, &registered)
}
