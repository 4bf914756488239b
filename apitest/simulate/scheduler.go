package simulate

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// latency is the minimum time between the sending of a request or event and its arrival.
const latency = time.Millisecond

// maxHold is the maximum time of an event or request to wait for its key in choices.after.
const maxHold = 20 * time.Second

// scheduler releases one waiter at a time, and only while all goroutines of the bubble are blocked. The set of waiters and their
// delays then depend on earlier releases only. The order in which goroutines began to wait is random and ignored.
type scheduler struct {
	choices *choices
	start   time.Time
	arrived chan struct{}

	mu       sync.Mutex
	waiting  []*waiter
	round    int
	counts   map[string]int
	isDay    bool // released and order are not kept
	released map[string]bool
	order    []string // the released keys
}

type waiter struct {
	key     string
	due     time.Time
	process *process // released only while it is not stopped; nil for the users
	round   int      // round of scheduler.wait
	gone    chan struct{}
}

func newScheduler(c *choices) *scheduler {
	return &scheduler{choices: c, start: time.Now(), arrived: make(chan struct{}, 1), counts: map[string]int{}, released: map[string]bool{}}
}

// number returns the ordinal of this use of key, from 1.
func (s *scheduler) number(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[key]++
	return s.counts[key]
}

func (s *scheduler) now() time.Duration { return time.Since(s.start) }

// wait blocks until the scheduler releases key, not before delay has passed. It returns the cause of ctx if ctx ends first.
func (s *scheduler) wait(ctx context.Context, key string, delay time.Duration) error {
	return s.waitOf(ctx, nil, key, delay)
}

// waitOf is wait for an action of a process, which waits also while the process is stopped.
func (s *scheduler) waitOf(ctx context.Context, p *process, key string, delay time.Duration) error {
	s.mu.Lock()
	w := &waiter{key, time.Now().Add(delay), p, s.round, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	select {
	case <-w.gone:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting = slices.DeleteFunc(s.waiting, func(other *waiter) bool { return other == w })
		return context.Cause(ctx)
	}
}

// run releases waiters until condition holds or limit has passed, and reports whether condition holds. condition is evaluated
// while all goroutines are blocked.
func (s *scheduler) run(limit time.Duration, condition func() bool) bool {
	end := time.Now().Add(limit)
	for {
		synctest.Wait()
		if condition != nil && condition() {
			return true
		}
		if s.releaseOne() {
			continue
		}
		next := time.Until(end)
		if next <= 0 {
			return false
		}
		if due, found := s.nextDue(); found {
			next = min(next, max(time.Until(due), 0))
		}
		timer := time.NewTimer(next)
		select {
		case <-s.arrived:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (s *scheduler) releaseOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	slices.SortFunc(s.waiting, func(a, b *waiter) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.round, b.round), cmp.Compare(a.key, b.key))
	})
	for i, w := range s.waiting {
		if time.Now().Before(s.dueOf(w)) {
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		if !s.isDay {
			s.released[w.key] = true
			s.order = append(s.order, w.key)
		}
		close(w.gone)
		return true
	}
	return false
}

// dueOf returns the earliest release of a waiter. The caller holds the lock.
func (s *scheduler) dueOf(w *waiter) time.Time {
	due := w.due
	if first := s.choices.after[w.key]; first != "" && !s.released[first] && !s.choices.ended.Load() {
		due = due.Add(maxHold)
	}
	if w.process != nil && w.process.stoppedUntil.After(due) {
		due = w.process.stoppedUntil
	}
	return due
}

func (s *scheduler) nextDue() (due time.Time, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiting {
		if d := s.dueOf(w); !found || d.Before(due) {
			due = d
			found = true
		}
	}
	return due, found
}
