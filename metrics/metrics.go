package metrics

import (
	"errors"
	"sync"
	"time"
)

// Series describes a metric.
type Series struct {
	Name, Help string
	Labels     []string
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
}

// Recorder returns the function that records values of a series with label values, in the order of Series.Labels. The function adds to
// a counter, sets a gauge or observes a value of a histogram. Both functions are safe for concurrent use.
type Recorder func(labels ...string) (record func(value float64))

// Provider creates the series of a library of metrics. Packages prommetrics and otelmetrics have providers.
type Provider interface {
	Counter(s Series) (Recorder, error)
	Gauge(s Series) (Recorder, error)
	Histogram(s Series) (Recorder, error)
	// GaugeFunc creates a gauge. At each collection observe calls record with the label values and the value of every member.
	GaugeFunc(s Series, observe func(record func(value float64, labels ...string))) error
}

// Metrics records the values of hooks. It is safe for concurrent use.
type Metrics struct {
	request    requestSeries
	queue      queueSeries
	controller controllerSeries
	webhook    webhookSeries
	leader     Recorder

	mu         sync.Mutex
	unfinished map[string]func() (sum, longest time.Duration) // by the name of the queue
	caches     map[cacheID]observedCache
}

// New creates all series. See [Metrics] for their values, and the package's comment for their names. Programs call the New of prommetrics
// or otelmetrics.
func New(provider Provider) (*Metrics, error) {
	b := &builder{provider: provider}
	m := &Metrics{
		request: newRequestSeries(b), queue: newQueueSeries(b), controller: newControllerSeries(b), webhook: newWebhookSeries(b),
		leader: b.gauge("leader_election_master_status", "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, "+
			"1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.", "name"),
		unfinished: map[string]func() (sum, longest time.Duration){}, caches: map[cacheID]observedCache{},
	}
	m.observeQueues(b)
	m.observeCaches(b)
	return m, b.err
}

// builder creates series and collects their errors.
type builder struct {
	provider Provider
	err      error
}

func (b *builder) collect(r Recorder, err error) Recorder {
	b.err = errors.Join(b.err, err)
	return r
}

func (b *builder) counter(name, help string, labels ...string) Recorder {
	return b.collect(b.provider.Counter(Series{Name: name, Help: help, Labels: labels}))
}

func (b *builder) gauge(name, help string, labels ...string) Recorder {
	return b.collect(b.provider.Gauge(Series{Name: name, Help: help, Labels: labels}))
}

func (b *builder) histogram(buckets []float64, name, help string, labels ...string) Recorder {
	return b.collect(b.provider.Histogram(Series{Name: name, Help: help, Labels: labels, Buckets: buckets}))
}

func (b *builder) gaugeFunc(observe func(record func(float64, ...string)), name, help string, labels ...string) {
	b.err = errors.Join(b.err, b.provider.GaugeFunc(Series{Name: name, Help: help, Labels: labels}, observe))
}
