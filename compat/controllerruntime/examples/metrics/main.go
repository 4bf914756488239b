// Command metrics prints the keys of changed ConfigMaps, and serves metrics of its requests and its work queue at
// http://localhost:8080/metrics. Names and labels equal client-go's and controller-runtime's, so existing dashboards and alerts
// keep working.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	registry := prometheus.NewRegistry()
	server := &http.Server{Addr: "localhost:8080", Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	var group errgroup.Group
	group.Go(server.ListenAndServe)
	cfg, err := transport.Load(ctx, nil)
	if err == nil {
		err = run(ctx, cfg, registry, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
			_, err := fmt.Println(key)
			return 0, err
		})
	}
	stop()
	_ = group.Wait()
	if !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run reconciles all ConfigMaps until ctx ends.
func run(ctx context.Context, cfg *transport.Config, registry prometheus.Registerer, reconcile controller.ReconcileFunc) error {
	cfg.OnAttempt = requestMetrics(registry)
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	configMaps, err := client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	c := cache.New(configMaps.AllNamespaces(), &cache.Options[unstructured.Object]{})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Run(ctx) })
	group.Go(func() error {
		return controller.Run(ctx, c, reconcile, &controller.Options{Queue: workqueue.Options{Metrics: queueMetrics(registry, "configmap")}})
	})
	return group.Wait()
}

// requestMetrics returns a callback for transport.Options.OnAttempt.
func requestMetrics(registry prometheus.Registerer) func(context.Context, transport.Attempt) {
	results := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "rest_client_requests_total", Help: "Attempts of requests by status code, method and host.",
	}, []string{"code", "method", "host"})
	durations := promauto.With(registry).NewHistogramVec(prometheus.HistogramOpts{
		Name: "rest_client_request_duration_seconds", Help: "Time until the header of a response by verb and host.",
		Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
	}, []string{"verb", "host"})
	return func(_ context.Context, attempt transport.Attempt) {
		host := ""
		code := "<error>"
		if target, err := url.Parse(attempt.URL); err == nil {
			host = target.Host
		}
		if attempt.StatusCode != 0 {
			code = strconv.Itoa(attempt.StatusCode)
		}
		results.WithLabelValues(code, attempt.Method, host).Inc()
		durations.WithLabelValues(attempt.Method, host).Observe(attempt.Duration.Seconds())
	}
}

// queueMetrics returns the metrics of a queue. A program with several queues registers the vectors once.
func queueMetrics(registry prometheus.Registerer, name string) workqueue.Metrics {
	factory := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"name": name, "controller": name}, registry))
	histogram := func(metric, help string) func(time.Duration) {
		h := factory.NewHistogram(prometheus.HistogramOpts{Name: metric, Help: help, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12)})
		return func(d time.Duration) { h.Observe(d.Seconds()) }
	}
	counter := func(metric, help string) func() {
		return factory.NewCounter(prometheus.CounterOpts{Name: metric, Help: help}).Inc
	}
	depth := factory.NewGauge(prometheus.GaugeOpts{Name: "workqueue_depth", Help: "Keys that are ready.", ConstLabels: prometheus.Labels{"priority": ""}})
	return workqueue.Metrics{
		OnNew: func(unfinished func() (sum, longest time.Duration)) {
			factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "workqueue_unfinished_work_seconds", Help: "Working time of keys with a worker."},
				func() float64 { sum, _ := unfinished(); return sum.Seconds() })
			factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "workqueue_longest_running_processor_seconds", Help: "Longest time for which a worker has had a key."},
				func() float64 { _, longest := unfinished(); return longest.Seconds() })
		},
		OnDepth: func(keys int) { depth.Set(float64(keys)) },
		OnAdd:   counter("workqueue_adds_total", "Keys that were added."),
		OnGet:   histogram("workqueue_queue_duration_seconds", "Time for which a key was ready."),
		OnDone:  histogram("workqueue_work_duration_seconds", "Time for which a worker had a key."),
		OnRetry: counter("workqueue_retries_total", "Keys that were added again after a failure."),
	}
}
