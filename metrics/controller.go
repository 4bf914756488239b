package metrics

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
)

// reconcileBuckets are the buckets of controller-runtime.
var reconcileBuckets = []float64{
	0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
	1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
}

type controllerSeries struct{ results, errors, terminal, panics, duration, maxWorkers, activeWorkers Recorder }

func newControllerSeries(b *builder) controllerSeries {
	return controllerSeries{
		results:  b.counter("controller_runtime_reconcile_total", "Total number of reconciliations per controller", "controller", "result"),
		errors:   b.counter("controller_runtime_reconcile_errors_total", "Total number of reconciliation errors per controller", "controller"),
		terminal: b.counter("controller_runtime_terminal_reconcile_errors_total", "Total number of terminal reconciliation errors per controller", "controller"),
		panics:   b.counter("controller_runtime_reconcile_panics_total", "Total number of reconciliation panics per controller", "controller"),
		duration: b.histogram(reconcileBuckets, "controller_runtime_reconcile_time_seconds", "Length of time per reconciliation per controller", "controller"),
		maxWorkers: b.gauge("controller_runtime_max_concurrent_reconciles",
			"Maximum number of concurrent reconciles per controller", "controller"),
		activeWorkers: b.gauge("controller_runtime_active_workers", "Number of currently used workers per controller", "controller"),
	}
}

// Controller returns a copy of opts with hooks that record the reconciles and the queue of a controller, an Operator or, in RunOptions, a
// controller of package fleet. OnReconcile of opts is still called. The hooks replace QueueMetrics and Queue.Metrics.
//
// name is the value of the labels controller and name. "" means the kind in lower case, as in controller-runtime: an Operator has a
// controller for each watch. controller.RunKeys and package fleet need a name.
func (m *Metrics) Controller(name string, opts *controller.Options) *controller.Options {
	recorded := *cmp.Or(opts, &controller.Options{})
	next := recorded.OnReconcile
	recorded.OnReconcile = func(result controller.ReconcileResult) {
		m.recordReconcile(cmp.Or(name, strings.ToLower(result.GVK.Kind)), result)
		if next != nil {
			next(result)
		}
	}
	recorded.QueueMetrics = func(resource *dynamic.Resource) workqueue.Metrics {
		own := name
		if own == "" && resource != nil {
			own = strings.ToLower(resource.APIResource().GVK.Kind)
		}
		m.controller.maxWorkers(own)(float64(max(recorded.Workers, 1)))
		m.createReconcileSeries(own)
		return m.controllerQueue(own)
	}
	return &recorded
}

// controllerQueue returns the callbacks of a controller's queue: an active worker has a key.
func (m *Metrics) controllerQueue(name string) workqueue.Metrics {
	queue := m.Queue(name)
	active := 0 // under the queue's lock
	record := m.controller.activeWorkers(name)
	record(0)
	onGet := queue.OnGet
	queue.OnGet = func(d time.Duration) {
		active++
		record(float64(active))
		onGet(d)
	}
	onDone := queue.OnDone
	queue.OnDone = func(d time.Duration) {
		active--
		record(float64(active))
		onDone(d)
	}
	return queue
}

// createReconcileSeries creates the counters of a controller with the value 0, as controller-runtime does.
func (m *Metrics) createReconcileSeries(name string) {
	for _, result := range []string{"error", "requeue_after", "requeue", "success"} {
		m.controller.results(name, result)(0)
	}
	for _, counter := range []Recorder{m.controller.errors, m.controller.terminal, m.controller.panics} {
		counter(name)(0)
	}
}

func (m *Metrics) recordReconcile(name string, result controller.ReconcileResult) {
	m.controller.duration(name)(result.Duration.Seconds())
	if result.Err == nil {
		text := "success"
		if result.After > 0 {
			text = "requeue_after"
		}
		m.controller.results(name, text)(1)
		return
	}
	m.controller.results(name, "error")(1)
	m.controller.errors(name)(1)
	if errors.Is(result.Err, controller.TerminalError(nil)) {
		m.controller.terminal(name)(1)
	}
	if _, isPanic := errors.AsType[*cache.PanicError](result.Err); isPanic {
		m.controller.panics(name)(1)
	}
}
