// Package workqueue implements a work queue of keys, such as the names of objects, for the workers of a controller:
//
//	queue := workqueue.New[string](nil)
//	queue.Add("shop/web")
//	for key, ok := queue.Get(ctx); ok; key, ok = queue.Get(ctx) {
//		if err := reconcile(ctx, key); err != nil {
//			queue.AddRateLimited(key)
//		} else {
//			queue.Forget(key)
//		}
//		queue.Done(key)
//	}
//
// A key added again while it waits is handed out once. A key added while it is processed is handed out again after Done. So no
// change is missed, and a key is never processed by two workers at a time. Keys have priorities, delays and a backoff.
//
// Ready keys are in a list for each priority, delayed keys in a heap with a single timer, and waiting workers on a stack, all
// under a single lock. Items of finished keys are reused, up to maxSpare, so that Add, Get and Done do not allocate under a known
// load.
package workqueue

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Queue is a work queue. It is safe for concurrent use and has no goroutine. It needs no closing after its last use, but delayed
// keys keep it alive until they are due.
type Queue[K comparable] struct {
	opts  Options
	began time.Time // the origin of all times below

	mu       sync.Mutex
	items    map[K]*item[K] // ready, delayed or with a worker
	spare    []*item[K]
	ready    readyList[K]
	delayed  delayHeap[K]
	timer    *time.Timer // for the first of delayed; nil until the first delay
	failures map[K]int   // calls of AddRateLimited since Forget
	working  int         // keys between Get and Done
	// unfinished has the items between Get and Hold or Done; nil without Metrics.OnNew.
	unfinished map[*item[K]]struct{}
	waiters    []chan struct{}
	idle       []chan struct{} // reused channels of former waiters
	state      state
	drained    chan struct{} // closed when the queue has shut down and all keys are done

	scheduler *Scheduler   // of the last Get; nil for none
	names     map[K]string // of keys, for scheduler
}

type state int

const (
	open     state = iota
	draining       // accepts no keys, hands out ready keys
	shutDown       // hands out no keys
)

// maxSpare limits the items kept for reuse, to about 2 MB.
const maxSpare = 16_384

type item[K comparable] struct {
	key             K
	priority        int
	working         bool // between Get and Done
	held            bool // since Hold, while working
	addedAgain      bool // while working
	next, prev      *item[K]
	sequence        uint64           // in ready
	list            *priorityList[K] // of ready; nil if the item is not ready
	heapIndex       int              // in delayed, from 1; 0 if it is not delayed
	due             time.Duration
	delayedPriority int
	addedAt, gotAt  time.Duration // set only for Metrics
}

// Options configure a queue. nil and zero values mean the defaults.
type Options struct {
	// RateLimiter determines the delays of AddRateLimited; nil means ExponentialBackoff(0, 0).
	RateLimiter RateLimiter
	// Metrics are called for events of the queue.
	Metrics Metrics
	// OnPanic is called with the value of a panic in Metrics while a delayed key becomes due, in the goroutine of the panic. With
	// nil the panic ends the program.
	OnPanic func(value any)
}

// Metrics are optional callbacks; nil callbacks cost nothing. They are called sequentially, under the queue's lock: they must be
// quick, like a gauge or a histogram, and must not use the queue. OnNew is called without the lock. The names in brackets are Kubernetes' own metrics,
// https://kubernetes.io/docs/reference/instrumentation/metrics/. A panic reaches the caller of the queue's method; a delayed key
// becoming due has no caller, see Options.OnPanic.
type Metrics struct {
	// OnDepth is called with the number of ready keys when it changes (workqueue_depth).
	OnDepth func(keys int)
	// OnAdd is called for each added key, except for a key that is already ready (workqueue_adds_total).
	OnAdd func()
	// OnGet is called with the time between a key's readiness and Get (workqueue_queue_duration_seconds).
	OnGet func(waited time.Duration)
	// OnDone is called with the time for which a worker had a key, until Hold or Done (workqueue_work_duration_seconds).
	OnDone func(worked time.Duration)
	// OnRetry is called for each AddRateLimited and each AddAfter with a delay, as in client-go (workqueue_retries_total).
	OnRetry func()
	// OnNew is called by New, with a function for gauges that are read at a scrape. The function returns the current working time
	// of all keys with a worker: their sum (workqueue_unfinished_work_seconds) and the longest
	// (workqueue_longest_running_processor_seconds). It is safe for concurrent use.
	OnNew func(unfinished func() (sum, longest time.Duration))
}

// New returns an empty queue.
func New[K comparable](opts *Options) *Queue[K] {
	q := &Queue[K]{
		opts: *cmp.Or(opts, &Options{}), began: time.Now(),
		items: map[K]*item[K]{}, failures: map[K]int{}, drained: make(chan struct{}),
	}
	if q.opts.RateLimiter == nil {
		q.opts.RateLimiter = ExponentialBackoff(0, 0)
	}
	if q.opts.Metrics.OnNew != nil {
		q.unfinished = map[*item[K]]struct{}{}
		q.opts.Metrics.OnNew(q.unfinishedWork)
	}
	return q
}

// AddOptions configure a call of [Queue.AddWithOptions]. nil and zero values mean the defaults.
type AddOptions struct {
	// Priority orders ready keys: higher priorities are handed out first, keys of equal priority in the order of their additions.
	// Adding a ready key again raises its priority to the higher of both. Against starvation, every 16th Get hands out the oldest
	// ready key: a key is handed out after at most 16 * (1 + ready keys added before it) calls of Get.
	Priority int
	// After is the delay of the key.
	After time.Duration
	// RateLimited delays the key like AddRateLimited, or by After if After is longer.
	RateLimited bool
}

// Add adds a key. After ShutDown or ShutDownWithDrain it has no effect.
func (q *Queue[K]) Add(key K) { q.AddWithOptions(key, nil) }

// AddAfter adds a key after a delay. For an already delayed key, the earlier time and the higher priority win. A delayed key
// added without a delay in the meantime is handed out twice.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) {
	q.AddWithOptions(key, &AddOptions{After: delay})
}

// AddRateLimited adds a failed key, after the delay of Options.RateLimiter for its calls since Forget.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWithOptions(key, &AddOptions{RateLimited: true}) }

// AddWithOptions adds a key with a priority, a delay or a backoff; nil opts are as in [Queue.Add].
func (q *Queue[K]) AddWithOptions(key K, opts *AddOptions) {
	if opts == nil {
		opts = &AddOptions{}
	}
	q.mu.Lock()
	defer q.mu.Unlock() // also after a panic in Metrics
	if q.state != open {
		return
	}
	if q.opts.Metrics.OnRetry != nil && (opts.RateLimited || opts.After > 0) {
		q.opts.Metrics.OnRetry()
	}
	delay := opts.After
	if opts.RateLimited {
		delay = max(delay, q.backoff(key))
	}
	if delay > 0 {
		q.delay(q.itemOf(key), delay, opts.Priority)
		return
	}
	q.add(q.itemOf(key), opts.Priority)
}

// Get waits for a key and returns it. The caller must call Done with the key. ok is false if ctx has ended, even if a key is
// ready, and if the queue is shut down and has no more keys to hand out.
func (q *Queue[K]) Get(ctx context.Context) (key K, ok bool) {
	key, _, ok = q.GetWithPriority(ctx)
	return key, ok
}

// GetWithPriority is Get, and also returns the priority of the key.
func (q *Queue[K]) GetWithPriority(ctx context.Context) (key K, priority int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	scheduler, _ := ctx.Value(schedulerKey{}).(*Scheduler)
	for ctx.Err() == nil { // under the lock: after the end of ctx no new key is handed out
		var it *item[K]
		if scheduler != nil {
			it = q.popScheduled(ctx, scheduler)
		} else {
			it = q.ready.pop()
		}
		if it != nil {
			q.handOut(it)
			return it.key, it.priority, true
		}
		if q.state == shutDown || q.state == draining && q.working == 0 || !q.wait(ctx) {
			break
		}
	}
	if q.ready.count > 0 { // ctx may have ended right after this worker was woken
		q.wake()
	}
	return key, 0, false
}

// Hold ends the work on a key from Get for Metrics, but hands out the key only after Done. It is for a worker that is done with a key
// whose next work must wait.
func (q *Queue[K]) Hold(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.items[key]; it != nil && it.working && !it.held {
		it.held = true
		q.reportDone(it)
	}
}

// Done reports that the worker has finished with a key from Get. A key without a worker is ignored.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.items[key]
	if it == nil || !it.working {
		return
	}
	isHeld := it.held
	it.working = false
	it.held = false
	q.working--
	if !isHeld {
		q.reportDone(it)
	}
	if it.addedAgain {
		it.addedAgain = false
		q.push(it)
	} else {
		q.drop(it)
	}
	q.checkDrained()
}

// Forget resets a key's backoff, after a success or when the key will not be retried. A delayed key stays delayed, see
// [Queue.ForgetDelayed]. The failures of a key are kept until Forget.
func (q *Queue[K]) Forget(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, key)
}

// NumRequeues returns the number of AddRateLimited calls for the key since the last Forget.
func (q *Queue[K]) NumRequeues(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures[key]
}

// Contains reports whether the queue has the key: ready, delayed, or with a worker.
func (q *Queue[K]) Contains(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.items[key] != nil
}

// Len returns the number of ready keys, without delayed and processed keys.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.count
}

func (q *Queue[K]) now() time.Duration { return time.Since(q.began) }

func (q *Queue[K]) itemOf(key K) *item[K] {
	it := q.items[key]
	if it != nil {
		return it
	}
	if last := len(q.spare) - 1; last >= 0 {
		it = q.spare[last]
		q.spare = q.spare[:last]
	} else {
		it = new(item[K])
	}
	it.key = key
	q.items[key] = it
	return it
}

// drop removes an item that is neither ready nor delayed nor with a worker.
func (q *Queue[K]) drop(it *item[K]) {
	if it.list != nil || it.working || it.heapIndex != 0 {
		return
	}
	delete(q.items, it.key)
	if len(q.spare) < maxSpare {
		*it = item[K]{}
		q.spare = append(q.spare, it)
	}
}

// add makes an item ready, at once or in Done.
func (q *Queue[K]) add(it *item[K], priority int) {
	switch {
	case it.list != nil:
		if priority > it.priority {
			q.ready.remove(it)
			it.priority = priority
			q.ready.push(it)
		}
		return
	case it.addedAgain:
		it.priority = max(it.priority, priority)
		return
	}
	it.priority = priority
	if q.opts.Metrics.OnAdd != nil {
		q.opts.Metrics.OnAdd()
	}
	if q.opts.Metrics.OnGet != nil {
		it.addedAt = q.now()
	}
	if it.working {
		it.addedAgain = true
		return
	}
	q.push(it)
}

func (q *Queue[K]) push(it *item[K]) {
	q.ready.push(it)
	q.reportDepth()
	q.wake()
}

// handOut marks a popped item as processing.
func (q *Queue[K]) handOut(it *item[K]) {
	it.working = true
	q.working++
	q.reportDepth()
	if q.opts.Metrics.OnGet != nil || q.opts.Metrics.OnDone != nil || q.unfinished != nil {
		it.gotAt = q.now()
	}
	if q.unfinished != nil {
		q.unfinished[it] = struct{}{}
	}
	if q.opts.Metrics.OnGet != nil {
		q.opts.Metrics.OnGet(it.gotAt - it.addedAt)
	}
}

func (q *Queue[K]) unfinishedWork() (sum, longest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for it := range q.unfinished {
		sum += now - it.gotAt
		longest = max(longest, now-it.gotAt)
	}
	return sum, longest
}

func (q *Queue[K]) reportDone(it *item[K]) {
	delete(q.unfinished, it)
	if q.opts.Metrics.OnDone != nil {
		q.opts.Metrics.OnDone(q.now() - it.gotAt)
	}
}

func (q *Queue[K]) reportDepth() {
	if q.opts.Metrics.OnDepth != nil {
		q.opts.Metrics.OnDepth(q.ready.count)
	}
}
