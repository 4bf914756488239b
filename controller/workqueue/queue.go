// Package workqueue is a work queue of keys, such as the names of objects, for the workers of a controller:
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
// A key that is added while it waits is handed out once; one that is added while a worker has it is handed out again
// after that worker's Done. So no change is missed, and no two workers ever have the same key. Keys have priorities,
// delays and a backoff.
//
// Ready keys are in one list for each priority, delayed keys in a heap with one timer for the first, waiting workers on a
// stack, all under one lock. Items of finished keys are reused, up to maxSpare of them, so that Add, Get and Done of a
// known load allocate nothing.
package workqueue

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// Queue is a work queue. It is safe for concurrent use and has no goroutine of its own: a queue that is no longer used
// needs no closing, but delayed keys keep it alive until they are due.
type Queue[K comparable] struct {
	opts  Options
	began time.Time // the origin of all times below

	mu       sync.Mutex
	items    map[K]*item[K] // ready, delayed or with a worker
	spare    []*item[K]
	ready    readyList[K]
	delayed  delayHeap[K]
	timer    *time.Timer // for the first of delayed; nil until there was one
	failures map[K]int   // calls of AddRateLimited since Forget
	working  int         // keys between Get and Done
	waiters  []chan struct{}
	idle     []chan struct{} // channels of former waiters, reused
	state    state
	drained  chan struct{} // closed when the queue has shut down and all keys are done

	scheduler *Scheduler // of the last Get; nil for none
}

type state int

const (
	open     state = iota
	draining       // accepts no keys, hands out those that are ready
	shutDown       // hands out none
)

// maxSpare limits the items that are kept for reuse, to some 2 MB.
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
	// Metrics are called with what happens in the queue.
	Metrics Metrics
	// OnPanic is called with the value of a panic in Metrics while a delayed key becomes due, in the goroutine of the
	// panic. nil lets it end the program.
	OnPanic func(value any)
}

// Metrics are callbacks; nil ones cost nothing. They are called one at a time, under the queue's lock: they must be quick,
// as a gauge or a histogram is, and must not use the queue. The names in brackets are those of Kubernetes' own metrics,
// https://kubernetes.io/docs/reference/instrumentation/metrics/. A panic reaches the caller of the queue's method; where a
// delayed key becomes due there is none, see Options.OnPanic.
type Metrics struct {
	// OnDepth is called with the number of ready keys when it changes (workqueue_depth).
	OnDepth func(keys int)
	// OnAdd is called for each added key, but not for one that is ready already (workqueue_adds_total).
	OnAdd func()
	// OnGet is called with the time for which a key was ready (workqueue_queue_duration_seconds).
	OnGet func(waited time.Duration)
	// OnDone is called with the time for which a worker had a key, until Hold or Done (workqueue_work_duration_seconds).
	OnDone func(worked time.Duration)
	// OnRetry is called for each AddRateLimited (workqueue_retries_total).
	OnRetry func()
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
	return q
}

// AddOptions configure one [Queue.AddWithOptions]. nil and zero values mean the defaults.
type AddOptions struct {
	// Priority orders ready keys: the highest is handed out first, keys of one priority in the order of their additions.
	// A key that is ready already has the higher one of both. So that keys of low priorities do not wait for ever, every
	// 16th Get hands out the key that has been ready in its priority for the longest time: a key is handed out after at
	// most 16 calls of Get for itself and for each key that was ready before it.
	Priority int
	// After is the delay of the key.
	After time.Duration
	// RateLimited delays the key as AddRateLimited does, or by After if that is longer.
	RateLimited bool
}

// Add adds a key. A queue that is shut down ignores it.
func (q *Queue[K]) Add(key K) { q.AddWithOptions(key, nil) }

// AddAfter adds a key after a delay. If the key is delayed already, the earlier time and the higher priority hold. A
// delayed key that is added without a delay meanwhile is handed out twice.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) {
	q.AddWithOptions(key, &AddOptions{After: delay})
}

// AddRateLimited adds a key that failed, after the delay of Options.RateLimiter for its calls since Forget.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWithOptions(key, &AddOptions{RateLimited: true}) }

// AddWithOptions adds a key with a priority, a delay or a backoff; nil opts are those of [Queue.Add].
func (q *Queue[K]) AddWithOptions(key K, opts *AddOptions) {
	if opts == nil {
		opts = &AddOptions{}
	}
	q.mu.Lock()
	defer q.mu.Unlock() // also after a panic in Metrics
	if q.state != open {
		return
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

// Get waits for a key and hands it to the caller, who must call Done with it. ok is false if ctx has ended, even if a key
// is ready, and if the queue is shut down and has nothing left to hand out.
func (q *Queue[K]) Get(ctx context.Context) (key K, ok bool) {
	key, _, ok = q.GetWithPriority(ctx)
	return key, ok
}

// GetWithPriority is Get, and also returns the priority of the key.
func (q *Queue[K]) GetWithPriority(ctx context.Context) (key K, priority int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	scheduler, _ := ctx.Value(schedulerKey{}).(*Scheduler)
	for ctx.Err() == nil { // under the lock: a key that is added after ctx ended is not handed out
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

// Done reports that the worker has finished with a key from Get. A key that no worker has is ignored.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.items[key]
	if it == nil || !it.working {
		return
	}
	isHeld := it.held
	it.working, it.held = false, false
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

// Forget resets a key's backoff, after a success or when it will not be retried. A delayed key stays delayed. The failures
// of keys that are never forgotten are kept for ever.
func (q *Queue[K]) Forget(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, key)
}

// NumRequeues returns how often the key was added by AddRateLimited since the last Forget.
func (q *Queue[K]) NumRequeues(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures[key]
}

// Len returns the number of ready keys, without those that are delayed or with a worker.
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
		it, q.spare = q.spare[last], q.spare[:last]
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

// add makes an item ready, or has Done make it so.
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

// handOut marks an item that was just popped as processing.
func (q *Queue[K]) handOut(it *item[K]) {
	it.working = true
	q.working++
	q.reportDepth()
	if q.opts.Metrics.OnGet != nil || q.opts.Metrics.OnDone != nil {
		it.gotAt = q.now()
	}
	if q.opts.Metrics.OnGet != nil {
		q.opts.Metrics.OnGet(it.gotAt - it.addedAt)
	}
}

func (q *Queue[K]) reportDone(it *item[K]) {
	if q.opts.Metrics.OnDone != nil {
		q.opts.Metrics.OnDone(q.now() - it.gotAt)
	}
}

func (q *Queue[K]) reportDepth() {
	if q.opts.Metrics.OnDepth != nil {
		q.opts.Metrics.OnDepth(q.ready.count)
	}
}
