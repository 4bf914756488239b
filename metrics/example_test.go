package metrics_test

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/manager"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/metrics"
	"github.com/anykind/anykind/metrics/prommetrics"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// An operator with a leader serves its probes and the metrics of its requests, cache, controller and leadership.
func Example() {
	run := func(ctx context.Context, cfg *transport.Config, reconcile controller.ReconcileFunc) error {
		registry := prometheus.NewRegistry()
		recorded, err := prommetrics.New(registry)
		if err != nil {
			return err
		}
		cfg.OnAttempt = recorded.OnAttempt
		client, err := dynamic.Connect(ctx, cfg)
		if err != nil {
			return err
		}
		defer client.Close()
		configMaps, err := client.Resource(ctx, "configmaps")
		if err != nil {
			return err
		}
		leases, err := client.Resource(ctx, "leases")
		if err != nil {
			return err
		}
		m := manager.New(&manager.Options{Leases: leases.Namespace("shop"), LeaseName: "shop-operator"})
		mux := http.NewServeMux()
		mux.Handle("/", m.Probes())
		mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		m.AddServer("probes and metrics", manager.HTTPServer(&http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: time.Minute}, nil))
		c := cache.New(configMaps.AllNamespaces(), &cache.Options[unstructured.Object]{})
		metrics.AddCache(recorded, "shop-operator", c)
		m.AddCache("config maps", c)
		m.AddController("config maps", func(ctx context.Context) error {
			return controller.Run(ctx, c, reconcile, recorded.Controller("", nil))
		})
		m.AddController("leader metric", recorded.Leader("shop-operator"))
		return m.Run(ctx)
	}
	_ = func(ctx context.Context, cfg *transport.Config) error {
		return run(ctx, cfg, func(context.Context, types.NamespacedName) (time.Duration, error) { return 0, nil })
	}
}
