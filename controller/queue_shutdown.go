package controller

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/internal/retry"
)

// ShutDown ends the queue: what is ready or delayed is dropped, what is added is ignored, and every Get ends. Workers
// finish what they have in hand; their Done may still come.
func (q *Queue[K]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutDown()
}

func (q *Queue[K]) shutDown() {
	q.state = shut
	q.undelay()
	for it := q.ready.pop(); it != nil; it = q.ready.pop() {
		it.ready = false
		q.drop(it)
	}
	for _, it := range q.items {
		it.again = false
	}
	q.depth()
	q.callAll()
	q.checkDrained()
}

// ShutDownWithDrain ends the queue when its work is done: what is added or delayed is ignored, what is ready is still
// handed out, and so is what was added again while a worker had it. It returns when workers are done with all of it.
// Where ctx ends first it drops what is left, as ShutDown does, and returns an error that wraps ctx's; workers may then
// have keys in hand.
func (q *Queue[K]) ShutDownWithDrain(ctx context.Context) error {
	q.mu.Lock()
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	drained := q.drained
	if q.state == open {
		q.state = draining
		q.undelay()
	}
	q.checkDrained()
	q.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.ready.count + q.working
	q.shutDown()
	return fmt.Errorf("drain the queue: %d keys are not done: %w", left, retry.ContextError(ctx))
}

// checkDrained ends draining when there is nothing left to do.
func (q *Queue[K]) checkDrained() {
	if q.state == open || q.working > 0 || q.ready.count > 0 {
		return
	}
	q.callAll() // they waited for what a worker in hand might have had added again
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	select {
	case <-q.drained:
	default:
		close(q.drained)
	}
}
