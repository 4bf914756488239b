package controller

import (
	"context"
	"slices"
)

// wait gives up the lock until there may be something for the worker, and takes it again. It returns false if ctx has
// ended, also where the worker was called as well: a key that was added after that end is another's.
func (q *Queue[K]) wait(ctx context.Context) bool {
	var called chan struct{}
	if last := len(q.idle) - 1; last >= 0 {
		called, q.idle = q.idle[last], q.idle[:last]
	} else {
		called = make(chan struct{}, 1)
	}
	q.waiters = append(q.waiters, called)
	q.mu.Unlock()
	select {
	case <-called:
	case <-ctx.Done():
	}
	q.mu.Lock()
	ended := ctx.Err() != nil
	if ended {
		q.leave(called)
	}
	q.idle = append(q.idle, called)
	return !ended
}

// leave ends the waiting of a worker whose ctx has ended. If it was called just then, another one is called in its place.
func (q *Queue[K]) leave(called chan struct{}) {
	if at := slices.Index(q.waiters, called); at >= 0 {
		q.waiters = slices.Delete(q.waiters, at, at+1)
		return
	}
	select {
	case <-called:
	default: // taken already
	}
	if q.ready.count > 0 {
		q.call()
	}
}

// call calls the worker that came last: its memory is the warmest.
func (q *Queue[K]) call() {
	if last := len(q.waiters) - 1; last >= 0 {
		q.waiters[last] <- struct{}{}
		q.waiters = q.waiters[:last]
	}
}

// callAll calls every worker: there will be nothing more.
func (q *Queue[K]) callAll() {
	for len(q.waiters) > 0 {
		q.call()
	}
}
