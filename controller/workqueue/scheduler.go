package workqueue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

// Scheduler makes the choices that are left to the runtime and to chance otherwise, for tests that repeat them: which key a
// worker gets and when, and how long retries are delayed. All fields are required. See [WithScheduler].
type Scheduler struct {
	// OnGet is called by Get when keys are ready, and may block until ctx ends. Get takes one of those that are ready when it
	// returns.
	OnGet func(ctx context.Context)
	// Choose returns the index of the key that Get takes. The keys are as fmt.Sprint prints them, ascending. It is called
	// under the queue's lock and must not use the queue.
	Choose func(keys []string) int
	// Backoff returns the delay of AddRateLimited, instead of Options.RateLimiter, in a queue whose workers have called Get.
	// It is called under the queue's lock and must not use the queue.
	Backoff func(key string, failures int) time.Duration
	// Jitter returns the random part of a delay, from 0 to limit, of requests, watches, caches and leader elections.
	Jitter func(limit time.Duration) time.Duration
}

// WithScheduler returns a ctx with which the queues of workers, and all retries of this library, follow a Scheduler.
func WithScheduler(ctx context.Context, s *Scheduler) context.Context {
	return context.WithValue(retry.WithRandom(ctx, s.Jitter), schedulerKey{}, s)
}

type schedulerKey struct{}

// popScheduled removes and returns the ready item that a Scheduler chooses, nil if there is none or ctx ends before. It
// releases the lock while OnGet runs.
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
	byName := map[string]*item[K]{}
	for _, list := range q.ready.lists {
		for it := list.root.next; it != &list.root; it = it.next {
			byName[fmt.Sprint(it.key)] = it
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	chosen := byName[names[s.Choose(names)]]
	q.ready.remove(chosen)
	return chosen
}
