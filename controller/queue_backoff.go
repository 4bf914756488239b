package controller

import (
	"math/rand/v2"
	"time"
)

const (
	defaultMinBackoff = 5 * time.Millisecond
	defaultMaxBackoff = 1000 * time.Second
)

// AddRateLimited adds a key that failed, after a delay that doubles with each call until Forget: from
// QueueOptions.MinBackoff up to MaxBackoff. Of that delay a random part, up to a half, is left out, so that what failed
// together is not tried again together.
func (q *Queue[K]) AddRateLimited(key K) { q.AddWith(key, AddOptions{RateLimited: true}) }

// Forget ends a key's back-off: it succeeded, or nobody will try again. A key that is delayed stays delayed. What fails
// for ever and is never forgotten is remembered for ever.
func (q *Queue[K]) Forget(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, key)
}

// NumRequeues is how often the key was added by AddRateLimited since it was last forgotten.
func (q *Queue[K]) NumRequeues(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures[key]
}

// backoff counts a failure and says how long to wait.
func (q *Queue[K]) backoff(key K) time.Duration {
	failed := q.failures[key]
	q.failures[key] = failed + 1
	if q.opts.Metrics.Retried != nil {
		q.opts.Metrics.Retried()
	}
	wait := q.opts.MaxBackoff
	if doubled := q.opts.MinBackoff << min(failed, 62); doubled>>min(failed, 62) == q.opts.MinBackoff {
		wait = min(wait, doubled)
	}
	return wait - rand.N(wait/2+1)
}
