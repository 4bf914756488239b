package prommetrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/metrics/prommetrics"
)

func ExampleNew() {
	registry := prometheus.NewRegistry()
	m, err := prommetrics.New(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := workqueue.New[string](&workqueue.Options{Metrics: m.Queue("shops")})
	queue.Add("web")
	queue.Add("db")
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "workqueue_depth") || strings.HasPrefix(line, "workqueue_adds") {
			fmt.Print(line)
		}
	}
	// Output:
	// workqueue_adds_total{controller="shops",name="shops"} 2
	// workqueue_depth{controller="shops",name="shops",priority=""} 2
}
