package otelmetrics_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/metrics/otelmetrics"
)

func ExampleNew() {
	reader := sdkmetric.NewManualReader() // a program has an exporter
	m, err := otelmetrics.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("shop-operator"))
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := workqueue.New[string](&workqueue.Options{Metrics: m.Queue("shops")})
	queue.Add("web")
	queue.Add("db")
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		fmt.Println(err)
		return
	}
	for _, series := range collected.ScopeMetrics[0].Metrics {
		if adds, isCounter := series.Data.(metricdata.Sum[float64]); isCounter {
			fmt.Println(series.Name, adds.DataPoints[0].Value)
		}
	}
	// Output: workqueue_adds_total 2
}
