package workqueue

import (
	"context"
	"fmt"
	"slices"

	"github.com/anykind/anykind/internal/retry"
)

// wait releases the lock until a key may be ready. It returns false if ctx has ended, even if the worker was woken, too: later
// keys are for the remaining workers.
func (q *Queue[K]) wait(ctx context.Context) bool {
	var woken chan struct{}
	if last := len(q.idle) - 1; last >= 0 {
		woken = q.idle[last]
		q.idle = q.idle[:last]
	} else {
		woken = make(chan struct{}, 1)
	}
	q.waiters = append(q.waiters, woken)
	q.mu.Unlock()
	select {
	case <-woken:
	case <-ctx.Done():
	}
	q.mu.Lock()
	ended := ctx.Err() != nil
	if ended {
		q.stopWaiting(woken)
	}
	q.idle = append(q.idle, woken)
	return !ended
}

// stopWaiting removes a worker after the end of its ctx. If it was just woken, the next worker is woken in its place.
func (q *Queue[K]) stopWaiting(woken chan struct{}) {
	if i := slices.Index(q.waiters, woken); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
		return
	}
	select {
	case <-woken:
	default: // received already
	}
	if q.ready.count > 0 {
		q.wake()
	}
}

// wake wakes the last waiter: its stack is most likely in the processor's cache.
func (q *Queue[K]) wake() {
	if last := len(q.waiters) - 1; last >= 0 {
		q.waiters[last] <- struct{}{}
		q.waiters = q.waiters[:last]
	}
}

func (q *Queue[K]) wakeAll() {
	for len(q.waiters) > 0 {
		q.wake()
	}
}

// ShutDown drops ready and delayed keys, ignores further additions and ends every Get. Workers may finish their keys and call
// Done.
func (q *Queue[K]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutDown()
}

func (q *Queue[K]) shutDown() {
	q.state = shutDown
	q.dropDelayed()
	for it := q.ready.pop(); it != nil; it = q.ready.pop() {
		q.drop(it)
	}
	for _, it := range q.items {
		it.addedAgain = false
	}
	q.reportDepth()
	q.wakeAll()
	q.checkDrained()
}

// ShutDownWithDrain drops delayed keys and ignores further additions, but hands out ready keys and keys added again during
// processing. It returns when all keys are done. If ctx ends before that, it drops the remaining keys, like ShutDown, and returns
// an error that wraps ctx's error; workers may then still have keys.
func (q *Queue[K]) ShutDownWithDrain(ctx context.Context) error {
	q.mu.Lock()
	if q.state == open {
		q.state = draining
		q.dropDelayed()
	}
	q.checkDrained()
	q.mu.Unlock()
	select {
	case <-q.drained:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	remaining := q.ready.count + q.working
	q.shutDown()
	return fmt.Errorf("drain the queue: %d keys are not done: %w", remaining, retry.ContextError(ctx))
}

// ShuttingDown reports whether ShutDown or ShutDownWithDrain has been called: the queue accepts no more keys.
func (q *Queue[K]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state != open
}

// checkDrained closes drained once the queue has shut down and every key is done.
func (q *Queue[K]) checkDrained() {
	if q.state == open || q.working > 0 || q.ready.count > 0 {
		return
	}
	q.wakeAll() // workers may have waited for a key to be added again
	select {
	case <-q.drained:
	default:
		close(q.drained)
	}
}
