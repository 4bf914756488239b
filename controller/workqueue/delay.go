package workqueue

import (
	"container/heap"
	"fmt"
	"math"
	"time"
)

// backoff counts a failure and returns the delay before the next attempt.
func (q *Queue[K]) backoff(key K) time.Duration {
	q.failures[key]++
	if q.scheduler != nil {
		return q.scheduler.Backoff(fmt.Sprint(key), q.failures[key])
	}
	return q.opts.RateLimiter(q.failures[key])
}

// delay makes an item ready after a delay. An already delayed item keeps the earlier due time.
func (q *Queue[K]) delay(it *item[K], after time.Duration, priority int) {
	now := q.now()
	due := now + after
	if due < after { // an overflow, after some 292 years
		due = math.MaxInt64
	}
	switch {
	case it.heapIndex == 0:
		it.due = due
		it.delayedPriority = priority
		heap.Push(&q.delayed, it)
	case due < it.due:
		it.due = due
		it.delayedPriority = max(it.delayedPriority, priority)
		heap.Fix(&q.delayed, it.heapIndex-1)
	default:
		it.delayedPriority = max(it.delayedPriority, priority)
		return
	}
	if q.delayed[0] == it {
		q.setTimer(now)
	}
}

func (q *Queue[K]) setTimer(now time.Duration) {
	after := q.delayed[0].due - now
	if q.timer == nil {
		q.timer = time.AfterFunc(after, q.addDue)
		return
	}
	q.timer.Reset(after)
}

// addDue makes due items ready. It runs in the timer's goroutine.
func (q *Queue[K]) addDue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.opts.OnPanic != nil {
		defer func() {
			if value := recover(); value != nil {
				q.opts.OnPanic(value)
			}
		}()
	}
	now := q.now()
	for len(q.delayed) > 0 && q.delayed[0].due <= now {
		it := q.delayed[0]
		heap.Pop(&q.delayed)
		q.add(it, it.delayedPriority)
	}
	if len(q.delayed) > 0 {
		q.setTimer(now)
	}
}

// ForgetDelayed drops the delay of a key: it is not handed out at its due time. A ready key, or a key added again during its processing,
// stays.
func (q *Queue[K]) ForgetDelayed(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.items[key]; it != nil && it.heapIndex != 0 {
		heap.Remove(&q.delayed, it.heapIndex-1)
		q.drop(it)
	}
}

func (q *Queue[K]) dropDelayed() {
	if q.timer != nil {
		q.timer.Stop()
	}
	for _, it := range q.delayed {
		it.heapIndex = 0
		q.drop(it)
	}
	q.delayed = nil
}

// delayHeap is a [heap.Interface] of items; the first is due first.
type delayHeap[K comparable] []*item[K]

func (h delayHeap[K]) Len() int           { return len(h) }
func (h delayHeap[K]) Less(i, j int) bool { return h[i].due < h[j].due }

func (h delayHeap[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex = i + 1
	h[j].heapIndex = j + 1
}

func (h *delayHeap[K]) Push(x any) {
	it, _ := x.(*item[K])
	*h = append(*h, it)
	it.heapIndex = len(*h)
}

func (h *delayHeap[K]) Pop() any {
	last := len(*h) - 1
	it := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	it.heapIndex = 0
	return it
}
