package controller

import "time"

// QueueMetrics hears what happens in a queue; what is nil is not called and costs nothing. The calls are made one at a
// time, while the queue waits: they must be quick, as a gauge or a histogram is, and must not use the queue. The names
// in brackets are those of Kubernetes' own metrics,
// https://kubernetes.io/docs/reference/instrumentation/metrics/. A panic in one of them reaches the caller of the queue's
// method; where a delayed key becomes due, nobody calls: it ends [Run] and [Operator.Run] with a *[PanicError], and with
// a queue of one's own the program.
type QueueMetrics struct {
	// Depth gets the number of ready keys when it changes (workqueue_depth).
	Depth func(keys int)
	// Added is called for each key that will be handed out; not for one that is about to be anyway
	// (workqueue_adds_total).
	Added func()
	// Waited gets how long a key was ready before a worker got it (workqueue_queue_duration_seconds).
	Waited func(time.Duration)
	// Worked gets how long a worker had a key (workqueue_work_duration_seconds).
	Worked func(time.Duration)
	// Retried is called for each AddRateLimited (workqueue_retries_total).
	Retried func()
}

func (q *Queue[K]) depth() {
	if q.opts.Metrics.Depth != nil {
		q.opts.Metrics.Depth(q.ready.count)
	}
}
