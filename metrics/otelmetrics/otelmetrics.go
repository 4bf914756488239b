// Package otelmetrics records the hooks of package metrics with OpenTelemetry.
//
//	m, err := otelmetrics.New(otel.Meter("github.com/anykind/anykind"))
//	…
//	cfg.OnAttempt = m.OnAttempt
//
// Instruments have the names of the Prometheus series.
package otelmetrics

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/anykind/anykind/metrics"
)

// New creates the instruments of all series of package metrics. Labels are attributes of type string, durations have the unit s.
func New(meter metric.Meter) (*metrics.Metrics, error) { return metrics.New(provider{meter}) }

type provider struct{ meter metric.Meter }

// Counter implements metrics.Provider.
func (p provider) Counter(s metrics.Series) (metrics.Recorder, error) {
	counter, err := p.meter.Float64Counter(s.Name, metric.WithDescription(s.Help), metric.WithUnit(unitOf(s.Name)))
	return func(labels ...string) func(float64) {
		attributes := metric.WithAttributeSet(attributesOf(s, labels))
		return func(value float64) { counter.Add(noContext(), value, attributes) }
	}, err
}

// Gauge implements metrics.Provider.
func (p provider) Gauge(s metrics.Series) (metrics.Recorder, error) {
	gauge, err := p.meter.Float64Gauge(s.Name, metric.WithDescription(s.Help), metric.WithUnit(unitOf(s.Name)))
	return func(labels ...string) func(float64) {
		attributes := metric.WithAttributeSet(attributesOf(s, labels))
		return func(value float64) { gauge.Record(noContext(), value, attributes) }
	}, err
}

// Histogram implements metrics.Provider.
func (p provider) Histogram(s metrics.Series) (metrics.Recorder, error) {
	histogram, err := p.meter.Float64Histogram(s.Name, metric.WithDescription(s.Help), metric.WithUnit(unitOf(s.Name)),
		metric.WithExplicitBucketBoundaries(s.Buckets...))
	return func(labels ...string) func(float64) {
		attributes := metric.WithAttributeSet(attributesOf(s, labels))
		return func(value float64) { histogram.Record(noContext(), value, attributes) }
	}, err
}

// GaugeFunc implements metrics.Provider.
func (p provider) GaugeFunc(s metrics.Series, observe func(record func(value float64, labels ...string))) error {
	callback := func(_ context.Context, observer metric.Float64Observer) error {
		observe(func(value float64, labels ...string) {
			observer.Observe(value, metric.WithAttributeSet(attributesOf(s, labels)))
		})
		return nil
	}
	_, err := p.meter.Float64ObservableGauge(s.Name, metric.WithDescription(s.Help), metric.WithUnit(unitOf(s.Name)), metric.WithFloat64Callback(callback))
	return err
}

// noContext returns the ctx of all records: most hooks have none.
func noContext() context.Context { return context.Background() } //nolint:forbidigo // see above

func attributesOf(s metrics.Series, labels []string) attribute.Set {
	attributes := make([]attribute.KeyValue, len(labels))
	for i, label := range labels {
		attributes[i] = attribute.String(s.Labels[i], label)
	}
	return attribute.NewSet(attributes...)
}

func unitOf(name string) string {
	if strings.HasSuffix(name, "_seconds") {
		return "s"
	}
	return ""
}
