package controller

import (
	"context"
	"sync"
	"time"
)

// Queue is a work queue: what it holds are keys, such as the names of objects, and it hands each to one worker at a time.
//
// A key that is added while it waits is handed out once; one that is added while a worker has it is handed out again
// after that worker's Done. So nothing that happened is missed, and no two workers ever have the same key. Keys of one
// priority come in the order in which they were added.
//
// It is safe for concurrent use and has no goroutine of its own: a queue that is no longer used needs no closing, but
// delayed keys keep it alive until they are due.
type Queue[K comparable] struct {
	opts  QueueOptions
	began time.Time // all times are durations since

	mu       sync.Mutex
	items    map[K]*item[K] // those that wait, are delayed or are worked on
	spare    []*item[K]     // used again, so that the everyday key costs no allocation
	ready    levels[K]
	delays   delays[K]
	timer    *time.Timer // for the first of delays; nil until there is one
	failures map[K]int   // how often AddRateLimited was called since Forget
	working  int         // keys between Get and Done
	waiters  []chan struct{}
	idle     []chan struct{} // channels of waiters that come back
	state    queueState
	drained  chan struct{} // closed when draining has ended; nil while nobody drains
	onPanic  func(error)   // is called with a panic of Metrics in the timer's goroutine; nil lets it end the program
}

type queueState int

const (
	open     queueState = iota
	draining            // takes no keys, hands out those that are ready
	shut                // hands out none
)

// item is what the queue knows of a key.
type item[K comparable] struct {
	key             K
	priority        int
	ready           bool // in the list of its priority's level
	working         bool // between Get and Done
	again           bool // added while working
	next, prev      *item[K]
	level           *level[K]
	delayed         int // where in delays, from 1; 0: not there
	due             time.Duration
	delayedPriority int
	addedAt, gotAt  time.Duration // kept where somebody measures
}

// QueueOptions are what a queue can be told; the zero values are valid defaults.
type QueueOptions struct {
	// MinBackoff is the delay of a key's first AddRateLimited; each further one doubles it. 0 means 5 milliseconds.
	MinBackoff time.Duration
	// MaxBackoff is the longest delay of AddRateLimited. 0 means 1,000 seconds.
	MaxBackoff time.Duration
	// Metrics hears what happens in the queue.
	Metrics QueueMetrics
}

// AddOptions say how a key is added.
type AddOptions struct {
	// Priority decides who is handed out first: the highest. A key that waits already has the higher one of both. While
	// there are keys of a higher priority, those of lower ones wait, however long.
	Priority int
	// After is how long the key is delayed.
	After time.Duration
	// RateLimited delays the key by its back-off, or by After where that is longer.
	RateLimited bool
}

// NewQueue makes an empty queue.
func NewQueue[K comparable](opts *QueueOptions) *Queue[K] {
	q := &Queue[K]{began: time.Now(), items: map[K]*item[K]{}, failures: map[K]int{}}
	if opts != nil {
		q.opts = *opts
	}
	if q.opts.MinBackoff <= 0 {
		q.opts.MinBackoff = defaultMinBackoff
	}
	if q.opts.MaxBackoff <= 0 {
		q.opts.MaxBackoff = defaultMaxBackoff
	}
	return q
}

// Add adds a key. A queue that is shut down ignores it.
func (q *Queue[K]) Add(key K) {
	q.mu.Lock()
	defer q.mu.Unlock() // also where Metrics panic
	if q.state == open {
		q.add(q.item(key), 0)
	}
}

// AddAfter adds a key when the delay is over. Where the key is delayed already, the earlier time holds, and the higher
// priority; a key that waits, is worked on or is added meanwhile comes all the same, and then once more.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) {
	q.AddWith(key, AddOptions{After: delay})
}

// AddWith adds a key with options.
func (q *Queue[K]) AddWith(key K, opts AddOptions) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != open {
		return
	}
	if opts.RateLimited {
		opts.After = max(opts.After, q.backoff(key))
	}
	if opts.After <= 0 {
		q.add(q.item(key), opts.Priority)
		return
	}
	q.delay(q.item(key), opts.After, opts.Priority)
}

// Get waits for a key and hands it to the caller, who works on it and then calls Done. It is not ok when ctx has ended,
// whatever is ready then, or when the queue is shut down and has no more to hand out.
func (q *Queue[K]) Get(ctx context.Context) (key K, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ctx.Err() != nil { // with the lock: a key that is added after that end is not handed out
		return key, false
	}
	for {
		if found := q.ready.pop(); found != nil {
			return q.handOut(found), true
		}
		if q.state == shut || q.state == draining && q.working == 0 {
			return key, false
		}
		if !q.wait(ctx) {
			return key, false
		}
	}
}

// Done says that the worker has finished with the key that Get gave it. A key that no worker has is ignored.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.items[key]
	if it == nil || !it.working {
		return
	}
	it.working = false
	q.working--
	if q.opts.Metrics.Worked != nil {
		q.opts.Metrics.Worked(q.now() - it.gotAt)
	}
	if it.again {
		it.again = false
		q.push(it)
	} else {
		q.drop(it)
	}
	q.checkDrained()
}

// Len is how many keys are ready to be handed out: neither those that are delayed nor those that workers have.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.count
}

func (q *Queue[K]) now() time.Duration { return time.Since(q.began) }

// item finds a key's item, or makes one.
func (q *Queue[K]) item(key K) *item[K] {
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

// mostSpare is how many items are kept to be used again, for the next burst: some 2 MB.
const mostSpare = 16_384

// drop forgets an item that neither waits nor is delayed nor worked on.
func (q *Queue[K]) drop(it *item[K]) {
	if it.ready || it.working || it.delayed != 0 {
		return
	}
	delete(q.items, it.key)
	if len(q.spare) < mostSpare {
		*it = item[K]{}
		q.spare = append(q.spare, it)
	}
}

// add makes a key ready, or has it made so when its worker is done.
func (q *Queue[K]) add(it *item[K], priority int) {
	switch {
	case it.ready:
		if priority > it.priority {
			q.ready.remove(it)
			it.priority = priority
			q.ready.push(it)
		}
		return
	case it.working && it.again:
		it.priority = max(it.priority, priority)
		return
	}
	it.priority = priority
	if q.opts.Metrics.Added != nil {
		q.opts.Metrics.Added()
	}
	if q.opts.Metrics.Waited != nil {
		it.addedAt = q.now()
	}
	if it.working {
		it.again = true
		return
	}
	q.push(it)
}

// push puts an item where Get finds it, and calls somebody to get it.
func (q *Queue[K]) push(it *item[K]) {
	it.ready = true
	q.ready.push(it)
	q.depth()
	q.call()
}

// handOut gives an item, which was the first, to a worker.
func (q *Queue[K]) handOut(it *item[K]) K {
	it.ready, it.working = false, true
	q.working++
	q.depth()
	if q.opts.Metrics.Waited != nil || q.opts.Metrics.Worked != nil {
		it.gotAt = q.now()
	}
	if q.opts.Metrics.Waited != nil {
		q.opts.Metrics.Waited(it.gotAt - it.addedAt)
	}
	return it.key
}
