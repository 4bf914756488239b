package workqueue

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// getScheduled is Get with a Scheduler. The lock is held.
func (q *Queue[K]) getScheduled(ctx context.Context, s *Scheduler) (key K, ok bool) {
	q.scheduler = s
	for {
		if q.ready.count > 0 {
			q.mu.Unlock()
			s.OnGet(ctx)
			q.mu.Lock()
		}
		if ctx.Err() != nil {
			return key, false
		}
		if q.ready.count > 0 {
			return q.handOut(q.choose()), true
		}
		if q.state == shutDown || q.state == draining && q.working == 0 || !q.wait(ctx) {
			return key, false
		}
	}
}

// choose removes and returns the ready item that the Scheduler chooses.
func (q *Queue[K]) choose() *item[K] {
	type named struct {
		name string
		item *item[K]
	}
	var items []named
	for _, list := range q.ready.lists {
		for it := list.first; it != nil; it = it.next {
			items = append(items, named{fmt.Sprint(it.key), it})
		}
	}
	slices.SortFunc(items, func(a, b named) int { return strings.Compare(a.name, b.name) })
	names := make([]string, len(items))
	for i, it := range items {
		names[i] = it.name
	}
	chosen := items[q.scheduler.Choose(names)].item
	q.ready.remove(chosen)
	return chosen
}
