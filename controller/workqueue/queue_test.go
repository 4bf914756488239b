package workqueue_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/controller/workqueue"
)

// got returns the ready items in order, and marks them as done.
func got[K comparable](t *testing.T, q *workqueue.Queue[K]) []K {
	t.Helper()
	var all []K
	for q.Len() > 0 {
		key, ok := q.Get(t.Context())
		require.True(t, ok)
		all = append(all, key)
		q.Done(key)
	}
	return all
}

func TestQueue_AddReadyKeyOnce(t *testing.T) {
	q := workqueue.New[string](nil)
	for _, key := range []string{"a", "b", "a", "c", "b", "a"} {
		q.Add(key)
	}
	assert.Equal(t, 3, q.Len())
	assert.Equal(t, []string{"a", "b", "c"}, got(t, q))
	q.Add("a")
	assert.Equal(t, []string{"a"}, got(t, q), "after Done it is a new key")
}

func TestQueue_AddWhileWorkingRequeuesAfterDone(t *testing.T) {
	q := workqueue.New[string](nil)
	q.Add("a")
	key, ok := q.Get(t.Context())
	require.True(t, ok)
	require.Equal(t, "a", key)
	q.Add("a")
	q.Add("a")
	assert.Equal(t, 0, q.Len(), "no second worker may have it")
	q.Done("a")
	assert.Equal(t, []string{"a"}, got(t, q), "once, however often it was added")
}

func TestQueue_DoneOfUnknownKey(t *testing.T) {
	q := workqueue.New[string](nil)
	q.Done("a")
	q.Add("a")
	q.Done("a")
	assert.Equal(t, []string{"a"}, got(t, q))
	q.Done("a")
	assert.Equal(t, 0, q.Len())
}

func TestQueue_HigherPrioritiesFirst(t *testing.T) {
	q := workqueue.New[string](nil)
	q.Add("resync")
	q.AddWithOptions("low", &workqueue.AddOptions{Priority: -10})
	q.AddWithOptions("user", &workqueue.AddOptions{Priority: 10})
	q.Add("second")
	q.AddWithOptions("other user", &workqueue.AddOptions{Priority: 10})
	q.AddWithOptions("top", &workqueue.AddOptions{Priority: 11})
	assert.Equal(t, []string{"top", "user", "other user", "resync", "second", "low"}, got(t, q))
}

func TestQueue_HigherOfTwoPriorities(t *testing.T) {
	q := workqueue.New[string](nil)
	with := func(priority int) *workqueue.AddOptions { return &workqueue.AddOptions{Priority: priority} }
	for _, key := range []string{"a", "b", "c"} {
		q.Add(key)
	}
	q.AddWithOptions("c", with(5))
	q.AddWithOptions("c", with(1))
	q.AddWithOptions("b", with(1))
	assert.Equal(t, []string{"c", "b", "a"}, got(t, q), "while it waits")

	q.Add("a")
	_, _ = q.Get(t.Context())
	q.AddWithOptions("a", with(1))
	q.AddWithOptions("a", with(7))
	q.Add("a")
	q.AddWithOptions("b", with(6))
	q.Done("a")
	assert.Equal(t, []string{"a", "b"}, got(t, q), "while it is worked on")

	q.Add("b")
	q.Add("a")
	assert.Equal(t, []string{"b", "a"}, got(t, q), "but not for ever")
}

func TestQueue_PrioritiesAgreeWithModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		q := workqueue.New[int](nil)
		priorities := map[int]int{}
		var order []int // as they were added or raised
		for range 60 {
			key := random.IntN(20)
			priority := random.IntN(7) - 3
			q.AddWithOptions(key, &workqueue.AddOptions{Priority: priority})
			if old, known := priorities[key]; known && priority <= old {
				continue
			} else if known {
				order = without(order, key)
			}
			priorities[key] = priority
			order = append(order, key)
		}
		var want []int
		for passes := 0; len(order) > 0; {
			next := slices.MaxFunc(order, func(a, b int) int { return cmp.Compare(priorities[a], priorities[b]) }) // the first of them
			lowest := slices.MinFunc(order, func(a, b int) int { return cmp.Compare(priorities[a], priorities[b]) })
			if passes++; priorities[lowest] == priorities[next] {
				passes = 0
			} else if passes == 16 {
				next = order[0]
				passes = 0
			}
			want = append(want, next)
			order = without(order, next)
		}
		require.Equal(t, want, got(t, q))
	}
}

func without(all []int, gone int) (left []int) {
	for _, one := range all {
		if one != gone {
			left = append(left, one)
		}
	}
	return left
}

func TestQueue_AddAfterDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		began := time.Now()
		q.AddAfter("third", 3*time.Second)
		q.AddAfter("first", time.Second)
		q.AddAfter("second", 2*time.Second)
		q.AddAfter("now", 0)
		q.AddAfter("past", -time.Hour)
		assert.Equal(t, 2, q.Len(), "delayed keys are not ready")
		for _, want := range []struct {
			key string
			at  time.Duration
		}{{"now", 0}, {"past", 0}, {"first", time.Second}, {"second", 2 * time.Second}, {"third", 3 * time.Second}} {
			key, ok := q.Get(t.Context())
			require.True(t, ok)
			assert.Equal(t, want.key, key)
			assert.Equal(t, want.at, time.Since(began), want.key)
			q.Done(key)
		}
	})
}

func TestQueue_EarlierDelayAndHigherPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.AddWithOptions("a", &workqueue.AddOptions{After: time.Minute, Priority: 3})
		q.AddAfter("a", time.Second)
		q.AddAfter("a", time.Hour)
		q.AddWithOptions("b", &workqueue.AddOptions{After: time.Second, Priority: 2})
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"a", "b"}, got(t, q))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		assert.Equal(t, 0, q.Len(), "and only once")
	})
}

func TestQueue_AddDelayedKeyHandsOutTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.AddAfter("a", time.Second)
		q.Add("a")
		assert.Equal(t, []string{"a"}, got(t, q))
		q.Add("a")
		_, _ = q.Get(t.Context())
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, 0, q.Len(), "a worker has it")
		q.Done("a")
		assert.Equal(t, []string{"a"}, got(t, q))
	})
}

func TestQueue_ForgetDelayedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.ForgetDelayed("unknown")
		for i, key := range []string{"a", "b", "c"} {
			q.AddAfter(key, time.Duration(i+1)*time.Minute)
		}
		q.Add("c")
		q.ForgetDelayed("a")
		q.ForgetDelayed("c")
		assert.Equal(t, []string{"c"}, got(t, q), "a ready key stays")
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{"b"}, got(t, q))
		q.AddAfter("a", time.Minute)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{"a"}, got(t, q))
	})
}

func TestQueue_ManyDelaysInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](nil)
		random := rand.New(rand.NewPCG(3, 4))
		began := time.Now()
		due := map[int]time.Duration{}
		for range 5000 {
			key := random.IntN(2000)
			delay := time.Duration(1+random.IntN(100_000)) * time.Millisecond
			q.AddAfter(key, delay)
			if old, known := due[key]; !known || delay < old {
				due[key] = delay
			}
		}
		for len(due) > 0 {
			key, ok := q.Get(t.Context())
			require.True(t, ok)
			require.Equal(t, due[key], time.Since(began))
			delete(due, key)
			q.Done(key)
		}
	})
}

func TestQueue_DelayOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		time.Sleep(time.Second)
		q.AddAfter("never", 1<<63-1)
		q.AddAfter("soon", time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"soon"}, got(t, q))
		q.ShutDown()
	})
}

func TestQueue_BackoffDoubles(t *testing.T) {
	for name, tc := range map[string]struct {
		opts   *workqueue.Options
		delays []time.Duration
	}{
		"by default": {nil, []time.Duration{5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond}},
		"with bounds": {&workqueue.Options{RateLimiter: workqueue.ExponentialBackoff(time.Second, 5*time.Second)},
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}},
		"with bounds the wrong way round": {&workqueue.Options{RateLimiter: workqueue.ExponentialBackoff(time.Minute, time.Second)},
			[]time.Duration{time.Second, time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New[string](tc.opts)
				for i, longest := range tc.delays {
					began := time.Now()
					q.AddRateLimited("a")
					assert.Equal(t, i+1, q.NumRequeues("a"))
					key, ok := q.Get(t.Context())
					require.True(t, ok)
					q.Done(key)
					assert.LessOrEqual(t, time.Since(began), longest)
					assert.GreaterOrEqual(t, time.Since(began), longest/2)
				}
				q.Forget("a")
				assert.Equal(t, 0, q.NumRequeues("a"))
				began := time.Now()
				q.AddRateLimited("a")
				assert.Equal(t, []string{"a"}, gotAll(t, q, 1))
				assert.LessOrEqual(t, time.Since(began), tc.delays[0], "the back-off begins anew")
			})
		})
	}
}

// gotAll waits for that many keys.
func gotAll[K comparable](t *testing.T, q *workqueue.Queue[K], count int) (all []K) {
	t.Helper()
	for range count {
		key, ok := q.Get(t.Context())
		require.True(t, ok)
		all = append(all, key)
		q.Done(key)
	}
	return all
}

func TestQueue_BackoffOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](&workqueue.Options{RateLimiter: workqueue.ExponentialBackoff(0, time.Hour)})
		for range 200 {
			q.AddRateLimited("a")
			q.Add("a") // so that each call is a delay of its own
			got(t, q)
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			assert.Equal(t, []string{"a"}, got(t, q))
		}
		began := time.Now()
		q.AddRateLimited("a")
		gotAll(t, q, 1)
		assert.GreaterOrEqual(t, time.Since(began), 30*time.Minute)
		assert.LessOrEqual(t, time.Since(began), time.Hour)
	})
}

func TestQueue_BackoffHasJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](&workqueue.Options{RateLimiter: workqueue.ExponentialBackoff(time.Second, 0)})
		for key := range 100 {
			q.AddRateLimited(key)
		}
		times := map[time.Time]bool{}
		for range 100 {
			gotAll(t, q, 1)
			times[time.Now()] = true
		}
		assert.Greater(t, len(times), 50)
	})
}

func TestQueue_LongerOfDelayAndBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](&workqueue.Options{RateLimiter: workqueue.ExponentialBackoff(time.Second, 0)})
		began := time.Now()
		q.AddWithOptions("a", &workqueue.AddOptions{RateLimited: true, After: time.Minute})
		gotAll(t, q, 1)
		assert.Equal(t, time.Minute, time.Since(began))
		q.AddWithOptions("a", &workqueue.AddOptions{RateLimited: true, After: time.Millisecond})
		gotAll(t, q, 1)
		assert.GreaterOrEqual(t, time.Since(began), time.Minute+time.Second)
	})
}

func TestQueue_GetEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		ctx, cancel := context.WithCancel(t.Context())
		var ended atomic.Int32
		for range 3 {
			go func() {
				_, ok := q.Get(ctx)
				assert.False(t, ok)
				ended.Add(1)
			}()
		}
		synctest.Wait()
		assert.Zero(t, ended.Load(), "it waits until then")
		cancel()
		synctest.Wait()
		assert.EqualValues(t, 3, ended.Load())

		q.Add("a")
		_, ok := q.Get(ctx)
		assert.False(t, ok, "an ended context gets nothing")
		assert.Equal(t, []string{"a"}, got(t, q), "and takes nothing away")
	})
}

func TestQueue_GetHandsOutNothingAfterContextEnded(t *testing.T) {
	for range 50 { // a worker may be called and see its ctx end at once
		synctest.Test(t, func(t *testing.T) {
			q := workqueue.New[string](nil)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, ok := q.Get(ctx)
				assert.False(t, ok)
			}()
			synctest.Wait()
			cancel()
			q.Add("a")
			synctest.Wait()
			assert.Equal(t, []string{"a"}, got(t, q), "another worker may have it")
		})
	}
}

func TestQueue_GetPassesKeyToAnotherWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		taken := make(chan string, 1)
		ctx, cancel := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{t.Context(), ctx} { // the one that waits last is called first
			go func() {
				if key, ok := q.Get(ctx); ok {
					taken <- key
				}
			}()
			synctest.Wait()
		}
		cancel()
		q.Add("a")
		assert.Equal(t, "a", <-taken)
	})
}

// endingContext ends after a number of calls of Err.
type endingContext struct {
	context.Context

	calls atomic.Int32
}

func (c *endingContext) Err() error {
	if c.calls.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestQueue_GetEndsAfterWakeUp ends the ctx of a worker between its wake-up and its key.
func TestQueue_GetEndsAfterWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		received := make(chan bool)
		get := func(ctx context.Context) {
			_, ok := q.Get(ctx)
			received <- ok
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go get(ctx)
		synctest.Wait()
		ending := &endingContext{Context: t.Context()}
		ending.calls.Store(2) // before and after the wait
		go get(ending)        // the last waiter is woken first
		synctest.Wait()
		q.Add("shop/web")
		assert.False(t, <-received)
		assert.True(t, <-received)
	})
}

// TestQueue_LeavingWorkersLoseNoKey adds keys while the contexts of waiting workers end.
func TestQueue_LeavingWorkersLoseNoKey(t *testing.T) {
	q := workqueue.New[int](nil)
	for round := range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		taken := make(chan int, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			workers.Go(func() {
				if key, ok := q.Get(ctx); ok {
					taken <- key
					q.Done(key)
				}
			})
		}
		go cancel()
		q.Add(round)
		assert.Equal(t, round, <-taken)
		cancel()
		q.Add(-1) // for the one that is left
		workers.Wait()
		for q.Len() > 0 {
			got(t, q)
		}
	}
}

func TestQueue_ConcurrentWorkersMissNothing(t *testing.T) {
	const keys, adders, each = 20, 4, 3000
	q := workqueue.New[int](nil)
	var inHand [keys]atomic.Bool
	var state, seen [keys]atomic.Int64 // what happened to a key, and what a worker saw of it
	var workers, adding sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for {
				key, ok := q.Get(t.Context())
				if !ok {
					return
				}
				assert.True(t, inHand[key].CompareAndSwap(false, true), "two workers have %d", key)
				seen[key].Store(state[key].Load())
				inHand[key].Store(false)
				q.Done(key)
			}
		})
	}
	for n := range adders {
		adding.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for range each {
				key := random.IntN(keys)
				state[key].Add(1)
				switch random.IntN(4) {
				case 0:
					q.AddAfter(key, time.Duration(random.IntN(2000))*time.Microsecond)
					fallthrough
				case 1:
					q.AddWithOptions(key, &workqueue.AddOptions{Priority: random.IntN(3)})
				default:
					q.Add(key)
				}
			}
		})
	}
	adding.Wait()
	require.NoError(t, q.ShutDownWithDrain(t.Context()))
	workers.Wait()
	for key := range keys {
		assert.Equal(t, state[key].Load(), seen[key].Load(), "the last change of %d was not seen", key)
	}
}

func TestQueue_ShutDownDropsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("in hand")
		key, _ := q.Get(t.Context())
		q.Add(key)
		q.AddAfter("delayed", time.Minute)
		q.Add("ready")
		var ended sync.WaitGroup
		q.ShutDown()
		for range 3 {
			ended.Go(func() {
				_, ok := q.Get(t.Context())
				assert.False(t, ok)
			})
		}
		ended.Wait()
		q.Done(key)
		q.Add("late")
		q.AddAfter("late", time.Second)
		q.AddRateLimited("late")
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, 0, q.Len())
		q.ShutDown()
		assert.NoError(t, q.ShutDownWithDrain(t.Context()))
	})
}

func TestQueue_ShutDownEndsGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(*workqueue.Queue[string]) error{
			"at once":  func(q *workqueue.Queue[string]) error { q.ShutDown(); return nil },
			"draining": func(q *workqueue.Queue[string]) error { return q.ShutDownWithDrain(t.Context()) },
		} {
			q := workqueue.New[string](nil)
			var workers sync.WaitGroup
			for range 5 {
				workers.Go(func() {
					_, ok := q.Get(t.Context())
					assert.False(t, ok)
				})
			}
			synctest.Wait()
			assert.NoError(t, end(q), name)
			workers.Wait()
		}
	})
}

func TestQueue_ShutDownWithKeyInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("in hand")
		key, ok := q.Get(t.Context())
		require.True(t, ok)
		var ended atomic.Bool
		go func() {
			_, ok := q.Get(t.Context())
			assert.False(t, ok)
			ended.Store(true)
		}()
		synctest.Wait()
		assert.False(t, ended.Load())
		q.ShutDown()
		synctest.Wait()
		assert.True(t, ended.Load(), "before Done")
		q.Done(key)
	})
}

func TestQueue_ShutDownEndsDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("ready")
		var drained atomic.Bool
		go func() {
			assert.NoError(t, q.ShutDownWithDrain(t.Context()))
			drained.Store(true)
		}()
		synctest.Wait()
		assert.False(t, drained.Load(), "no worker has taken it")
		q.ShutDown()
		synctest.Wait()
		assert.True(t, drained.Load())
	})
}

func TestQueue_DrainFinishesReadyAndWorkingKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		var worked []string
		q.Add("in hand")
		key, _ := q.Get(t.Context())
		q.Add("ready")
		q.Add(key) // changed while a worker has it: that may not be lost
		q.AddAfter("delayed", time.Millisecond)
		var drained atomic.Bool
		go func() {
			assert.NoError(t, q.ShutDownWithDrain(t.Context()))
			drained.Store(true)
		}()
		synctest.Wait()
		q.Add("late")
		go func() {
			for key, ok := q.Get(t.Context()); ok; key, ok = q.Get(t.Context()) {
				time.Sleep(time.Second)
				worked = append(worked, key)
				q.Done(key)
			}
		}()
		time.Sleep(time.Minute)
		assert.False(t, drained.Load(), "a worker still has one")
		q.Done(key)
		time.Sleep(time.Second / 2)
		synctest.Wait()
		assert.False(t, drained.Load(), "it was handed out again")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.True(t, drained.Load())
		assert.Equal(t, []string{"ready", "in hand"}, worked)
	})
}

func TestQueue_DrainEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("stuck")
		_, _ = q.Get(t.Context())
		q.Add("ready")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := q.ShutDownWithDrain(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, "drain the queue: 2 keys are not done: context deadline exceeded")
		_, ok := q.Get(t.Context())
		assert.False(t, ok)
		q.Done("stuck")
		assert.NoError(t, q.ShutDownWithDrain(t.Context()), "now it is")
	})
}

func TestQueue_MetricsOfEveryStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		record := func(what string) func() { return func() { calls = append(calls, what) } }
		measure := func(what string) func(time.Duration) {
			return func(d time.Duration) { calls = append(calls, fmt.Sprint(what, " ", d)) }
		}
		q := workqueue.New[string](&workqueue.Options{RateLimiter: workqueue.ExponentialBackoff(time.Second, 0), Metrics: workqueue.Metrics{
			OnDepth: func(keys int) { calls = append(calls, fmt.Sprint("depth ", keys)) },
			OnAdd:   record("added"),
			OnGet:   measure("waited"), OnDone: measure("worked"), OnRetry: record("retried"),
		}})
		q.Add("a")
		q.Add("a")
		time.Sleep(time.Second)
		_, _ = q.Get(t.Context())
		time.Sleep(2 * time.Second)
		q.Add("a")
		time.Sleep(3 * time.Second)
		q.Done("a")
		got(t, q)
		q.AddAfter("a", time.Second)
		gotAll(t, q, 1)
		q.AddRateLimited("a")
		gotAll(t, q, 1)
		q.Add("b")
		q.ShutDown()
		assert.Equal(t, []string{
			"added", "depth 1", "depth 0", "waited 1s",
			"added", "worked 5s", "depth 1", "depth 0", "waited 3s", "worked 0s",
			"retried", "added", "depth 1", "depth 0", "waited 0s", "worked 0s",
			"retried", "added", "depth 1", "depth 0", "waited 0s", "worked 0s",
			"added", "depth 1", "depth 0",
		}, calls)
	})
}

func TestQueue_UnfinishedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var unfinished func() (sum, longest time.Duration)
		q := workqueue.New[string](&workqueue.Options{Metrics: workqueue.Metrics{OnNew: func(f func() (sum, longest time.Duration)) { unfinished = f }}})
		check := func(wantSum, wantLongest time.Duration) {
			sum, longest := unfinished()
			assert.Equal(t, [2]time.Duration{wantSum, wantLongest}, [2]time.Duration{sum, longest})
		}
		q.Add("a")
		q.Add("b")
		time.Sleep(time.Minute)
		check(0, 0)
		_, _ = q.Get(t.Context())
		time.Sleep(time.Second)
		_, _ = q.Get(t.Context())
		time.Sleep(2 * time.Second)
		check(5*time.Second, 3*time.Second)
		q.Done("a")
		check(2*time.Second, 2*time.Second)
		q.Hold("b")
		check(0, 0)
		q.Done("b")
		q.Add("a")
		_, _ = q.Get(t.Context())
		check(0, 0)
	})
}

func TestQueue_HoldKeepsKeyUntilDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var worked []time.Duration
		q := workqueue.New[string](&workqueue.Options{Metrics: workqueue.Metrics{OnDone: func(d time.Duration) { worked = append(worked, d) }}})
		q.Hold("a")
		q.Add("a")
		q.Hold("a")
		assert.Equal(t, []string{"a"}, got(t, q), "a key that no worker has cannot be held")
		q.Add("a")
		_, _ = q.Get(t.Context())
		time.Sleep(time.Second)
		q.Hold("a")
		q.Hold("a")
		q.Add("a")
		assert.Equal(t, 0, q.Len())
		time.Sleep(time.Minute)
		q.Done("a")
		assert.Equal(t, []string{"a"}, got(t, q))
		assert.Equal(t, []time.Duration{0, time.Second, 0}, worked)
		q.Add("a")
		_, _ = q.Get(t.Context())
		q.Hold("a")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, q.ShutDownWithDrain(ended), "it is not done")
		q.Done("a")
		require.NoError(t, q.ShutDownWithDrain(t.Context()))
	})
}

func TestQueue_Contains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		assert.False(t, q.Contains("a"))
		q.AddAfter("a", time.Second)
		assert.True(t, q.Contains("a"), "delayed")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.True(t, q.Contains("a"), "ready")
		_, _ = q.Get(t.Context())
		assert.True(t, q.Contains("a"), "with a worker")
		q.AddRateLimited("a")
		q.Done("a")
		assert.True(t, q.Contains("a"), "delayed again")
		time.Sleep(time.Second)
		_, _ = q.Get(t.Context())
		q.Done("a")
		assert.False(t, q.Contains("a"))
	})
}

func TestQueue_GetWithPriority(t *testing.T) {
	q := workqueue.New[string](nil)
	q.AddWithOptions("low", &workqueue.AddOptions{Priority: -100})
	q.AddWithOptions("raised", &workqueue.AddOptions{Priority: -100})
	q.AddWithOptions("raised", &workqueue.AddOptions{Priority: 7})
	for _, want := range []struct {
		key      string
		priority int
	}{{"raised", 7}, {"low", -100}} {
		key, priority, ok := q.GetWithPriority(t.Context())
		assert.True(t, ok)
		assert.Equal(t, want.key, key)
		assert.Equal(t, want.priority, priority)
	}
	q.ShutDown()
	_, _, ok := q.GetWithPriority(t.Context())
	assert.False(t, ok)
}

func TestQueue_KnownKeyAllocatesNothing(t *testing.T) {
	q := workqueue.New[string](nil)
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		q.Add("shop/web")
		key, _ := q.Get(ctx)
		q.AddAfter(key, time.Hour)
		q.Done(key)
	}))
	q.ShutDown()
}

func TestQueue_ReusesItemsOfFinishedKeys(t *testing.T) {
	q := workqueue.New[int](nil)
	ctx := t.Context()
	key := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		key = (key + 1) % 50 // each is finished before the next is added
		q.Add(key)
		got, _ := q.Get(ctx)
		q.Done(got)
	}))
}

func TestQueue_UsableAfterPanicInMetrics(t *testing.T) {
	fail := true
	queue := workqueue.New[string](&workqueue.Options{Metrics: workqueue.Metrics{OnAdd: func() {
		if fail {
			fail = false
			panic("out of order")
		}
	}}})
	assert.Panics(t, func() { queue.Add("a") })
	queue.Add("a")
	assert.Equal(t, 1, queue.Len())
}

func TestQueue_DrainErrorHasCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errCause := errors.New("the process ends")
		q := workqueue.New[string](nil)
		q.Add("a")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errCause)
		defer cancel()
		err := q.ShutDownWithDrain(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, errCause)
	})
}

func TestQueue_OnPanicOfTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var value any
		q := workqueue.New[string](&workqueue.Options{
			Metrics: workqueue.Metrics{OnAdd: func() { panic("out of order") }},
			OnPanic: func(v any) { value = v },
		})
		q.AddAfter("a", time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, "out of order", value)
	})
}
