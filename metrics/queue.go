package metrics

import (
	"maps"
	"time"

	"github.com/anykind/anykind/controller/workqueue"
)

// decades are the buckets of client-go's work queues and of controller-runtime's webhooks: from 10 nanoseconds to 1,000 seconds. Queries
// name the bounds as printed, so the rounding errors are included.
var decades = []float64{1e-08, 1e-07, 1e-06, 9.999999999999999e-06, 9.999999999999999e-05, 0.001, 0.01, 0.1, 1, 10, 100, 1000}

type queueSeries struct{ depth, adds, queueDuration, workDuration, retries Recorder }

func newQueueSeries(b *builder) queueSeries {
	return queueSeries{
		depth: b.gauge("workqueue_depth", "Current depth of workqueue by workqueue and priority", "name", "controller", "priority"),
		adds:  b.counter("workqueue_adds_total", "Total number of adds handled by workqueue", "name", "controller"),
		queueDuration: b.histogram(decades, "workqueue_queue_duration_seconds",
			"How long in seconds an item stays in workqueue before being requested", "name", "controller"),
		workDuration: b.histogram(decades, "workqueue_work_duration_seconds",
			"How long in seconds processing an item from workqueue takes.", "name", "controller"),
		retries: b.counter("workqueue_retries_total", "Total number of items added to the workqueue with a non-zero delay "+
			"(rate-limited requeues, explicit RequeueAfter or AddAfter calls)", "name", "controller"),
	}
}

// Queue returns the callbacks of a work queue with a name. [Metrics.Controller] includes them. A later queue of the same name replaces the
// gauges of the first. The label priority of workqueue_depth is empty: the depth is the sum of all priorities.
func (m *Metrics) Queue(name string) workqueue.Metrics {
	depth := m.queue.depth(name, name, "")
	adds := m.queue.adds(name, name)
	waited := m.queue.queueDuration(name, name)
	worked := m.queue.workDuration(name, name)
	retries := m.queue.retries(name, name)
	return workqueue.Metrics{
		OnNew: func(unfinished func() (sum, longest time.Duration)) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.unfinished[name] = unfinished
		},
		OnDepth: func(keys int) { depth(float64(keys)) },
		OnAdd:   func() { adds(1) },
		OnGet:   func(d time.Duration) { waited(d.Seconds()) },
		OnDone:  func(d time.Duration) { worked(d.Seconds()) },
		OnRetry: func() { retries(1) },
	}
}

// observeQueues creates the gauges that are read from the queues.
func (m *Metrics) observeQueues(b *builder) {
	observe := func(choose func(sum, longest time.Duration) time.Duration) func(func(float64, ...string)) {
		return func(record func(float64, ...string)) {
			m.mu.Lock()
			queues := maps.Clone(m.unfinished)
			m.mu.Unlock()
			for name, unfinished := range queues { // without mu: unfinished locks the queue
				record(choose(unfinished()).Seconds(), name, name)
			}
		}
	}
	b.gaugeFunc(observe(func(sum, _ time.Duration) time.Duration { return sum }), "workqueue_unfinished_work_seconds",
		"How many seconds of work has been done that is in progress and hasn't been observed by work_duration. Large values indicate stuck "+
			"threads. One can deduce the number of stuck threads by observing the rate at which this increases.", "name", "controller")
	b.gaugeFunc(observe(func(_, longest time.Duration) time.Duration { return longest }), "workqueue_longest_running_processor_seconds",
		"How many seconds has the longest running processor for workqueue been running.", "name", "controller")
}
