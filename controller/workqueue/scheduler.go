package workqueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// Scheduler makes the random choices of a queue reproducible, for tests: the key and time of each Get, and the delays of retries.
// All fields are required. See [WithScheduler].
type Scheduler struct {
	// OnGet is called by Get when keys are ready, and may block until ctx ends. After OnGet returns, Get takes a ready key.
	OnGet func(ctx context.Context)
	// Choose returns the index of the key for Get. The keys are formatted by fmt.Sprint, in ascending order. It is called under
	// the queue's lock and must not use the queue.
	Choose func(keys []string) int
	// Backoff returns the delay of AddRateLimited, instead of Options.RateLimiter, once a worker with the Scheduler has called
	// Get. It is called under the queue's lock and must not use the queue.
	Backoff func(key string, failures int) time.Duration
	// Jitter returns the random part of a delay, from 0 to limit, of requests, watches, caches and leader elections.
	Jitter func(limit time.Duration) time.Duration
	// Name returns a new unique name of lower-case letters, digits and hyphens, such as that of a Lease.
	Name func() string
}

// WithScheduler returns a ctx with a Scheduler for the queues of workers, and for all retries of this library.
func WithScheduler(ctx context.Context, s *Scheduler) context.Context {
	return context.WithValue(retry.WithRandom(ctx, s.Jitter, s.Name), schedulerKey{}, s)
}

type schedulerKey struct{}

// popScheduled removes and returns the ready item chosen by a Scheduler, or nil if no item is ready or ctx has ended. It releases
// the lock during OnGet.
func (q *Queue[K]) popScheduled(ctx context.Context, s *Scheduler) *item[K] {
	q.scheduler = s
	if q.ready.count == 0 {
		return nil
	}
	q.mu.Unlock()
	s.OnGet(ctx)
	q.mu.Lock()
	if q.ready.count == 0 || ctx.Err() != nil {
		return nil
	}
	type named struct {
		name string
		item *item[K]
	}
	ready := make([]named, 0, q.ready.count)
	for _, list := range q.ready.lists {
		for it := list.root.next; it != &list.root; it = it.next {
			ready = append(ready, named{q.nameOf(it.key), it})
		}
	}
	slices.SortFunc(ready, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	names := make([]string, len(ready))
	for i := range ready {
		names[i] = ready[i].name
	}
	chosen := ready[s.Choose(names)].item
	q.ready.remove(chosen)
	return chosen
}

// nameOf returns the formatted key for a Scheduler. The names are kept: each Get sorts all ready keys.
func (q *Queue[K]) nameOf(key K) string {
	name, found := q.names[key]
	if !found {
		name = fmt.Sprint(key)
		if q.names == nil {
			q.names = map[K]string{}
		}
		q.names[key] = name
	}
	return name
}
