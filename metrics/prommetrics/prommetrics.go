// Package prommetrics records the hooks of package metrics in a registry of Prometheus.
//
//	registry := prometheus.NewRegistry()
//	m, err := prommetrics.New(registry)
//	…
//	cfg.OnAttempt = m.OnAttempt
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
package prommetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/metrics"
)

// New registers all series of package metrics. Histograms are also native histograms, as in controller-runtime.
func New(registerer prometheus.Registerer) (*metrics.Metrics, error) {
	return metrics.New(provider{registerer})
}

type provider struct{ registerer prometheus.Registerer }

// Counter implements metrics.Provider.
func (p provider) Counter(s metrics.Series) (metrics.Recorder, error) {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: s.Name, Help: s.Help}, s.Labels)
	return func(labels ...string) func(float64) { return vec.WithLabelValues(labels...).Add }, p.registerer.Register(vec)
}

// Gauge implements metrics.Provider.
func (p provider) Gauge(s metrics.Series) (metrics.Recorder, error) {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: s.Name, Help: s.Help}, s.Labels)
	return func(labels ...string) func(float64) { return vec.WithLabelValues(labels...).Set }, p.registerer.Register(vec)
}

// Histogram implements metrics.Provider.
func (p provider) Histogram(s metrics.Series) (metrics.Recorder, error) {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: s.Name, Help: s.Help, Buckets: s.Buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, s.Labels)
	return func(labels ...string) func(float64) { return vec.WithLabelValues(labels...).Observe }, p.registerer.Register(vec)
}

// GaugeFunc implements metrics.Provider.
func (p provider) GaugeFunc(s metrics.Series, observe func(record func(value float64, labels ...string))) error {
	return p.registerer.Register(&collector{prometheus.NewDesc(s.Name, s.Help, s.Labels, nil), observe})
}

// collector is a prometheus.Collector of a gauge that is read at a scrape.
type collector struct {
	desc    *prometheus.Desc
	observe func(record func(value float64, labels ...string))
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements prometheus.Collector.
func (c *collector) Collect(collected chan<- prometheus.Metric) {
	c.observe(func(value float64, labels ...string) {
		metric, err := prometheus.NewConstMetric(c.desc, prometheus.GaugeValue, value, labels...)
		if err != nil {
			metric = prometheus.NewInvalidMetric(c.desc, err)
		}
		collected <- metric
	})
}
