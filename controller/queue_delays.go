package controller

import "time"

// delay puts an item off, or brings one that is delayed already forward.
func (q *Queue[K]) delay(it *item[K], after time.Duration, priority int) {
	now := q.now()
	due := now + after
	if due < after { // beyond what a Duration can say, some 292 years
		due = 1<<63 - 1
	}
	if it.delayed == 0 {
		it.due, it.delayedPriority = due, priority
		q.delays.push(it)
	} else {
		it.delayedPriority = max(it.delayedPriority, priority)
		if due >= it.due {
			return
		}
		it.due = due
		q.delays.up(it.delayed - 1)
	}
	if q.delays[0] == it {
		q.arm(now)
	}
}

// arm sets the one timer for the first of those that are delayed.
func (q *Queue[K]) arm(now time.Duration) {
	after := q.delays[0].due - now
	if q.timer == nil {
		q.timer = time.AfterFunc(after, q.release)
		return
	}
	q.timer.Reset(after)
}

// release makes ready what is due. It runs in the timer's goroutine.
func (q *Queue[K]) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.onPanic != nil {
		defer func() {
			if value := recover(); value != nil {
				q.onPanic(panicked("QueueOptions.Metrics", value))
			}
		}()
	}
	now := q.now()
	for len(q.delays) > 0 && q.delays[0].due <= now {
		it := q.delays.pop()
		q.add(it, it.delayedPriority)
	}
	if len(q.delays) > 0 {
		q.arm(now)
	}
}

func (q *Queue[K]) setOnPanic(f func(error)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.onPanic = f
}

// undelay forgets what is delayed.
func (q *Queue[K]) undelay() {
	if q.timer != nil {
		q.timer.Stop()
	}
	for _, it := range q.delays {
		it.delayed = 0
		q.drop(it)
	}
	q.delays = nil
}

// delays is a heap of items: the one that is due first is the first.
type delays[K comparable] []*item[K]

func (d *delays[K]) push(it *item[K]) {
	*d = append(*d, it)
	it.delayed = len(*d)
	d.up(len(*d) - 1)
}

func (d *delays[K]) pop() *item[K] {
	all := *d
	first, last := all[0], len(all)-1
	d.put(0, all[last])
	all[last] = nil
	*d = all[:last]
	if last > 0 {
		d.down(0)
	}
	first.delayed = 0
	return first
}

func (d *delays[K]) put(at int, it *item[K]) {
	(*d)[at] = it
	it.delayed = at + 1
}

func (d *delays[K]) up(at int) {
	it := (*d)[at]
	for at > 0 {
		parent := (at - 1) / 2
		if (*d)[parent].due <= it.due {
			break
		}
		d.put(at, (*d)[parent])
		at = parent
	}
	d.put(at, it)
}

func (d *delays[K]) down(at int) {
	it := (*d)[at]
	for {
		child := 2*at + 1
		if child >= len(*d) {
			break
		}
		if other := child + 1; other < len(*d) && (*d)[other].due < (*d)[child].due {
			child = other
		}
		if it.due <= (*d)[child].due {
			break
		}
		d.put(at, (*d)[child])
		at = child
	}
	d.put(at, it)
}
