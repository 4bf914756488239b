package workqueue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/controller/workqueue"
)

// fixed is a limiter without jitter.
func fixed(delay time.Duration) workqueue.RateLimiter {
	return func(int) time.Duration { return delay }
}

func TestRateLimiters_DelayByFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		limiter workqueue.RateLimiter
		longest []time.Duration // by failures, from 1
	}{
		"exponential":                {workqueue.ExponentialBackoff(time.Second, 5*time.Second), []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}},
		"exponential, by default":    {workqueue.ExponentialBackoff(0, 0), []time.Duration{5 * time.Millisecond, 10 * time.Millisecond}},
		"fast and slow":              {workqueue.FastSlow(time.Second, time.Minute, 2), []time.Duration{time.Second, time.Second, time.Minute, time.Minute}},
		"fast and slow without fast": {workqueue.FastSlow(time.Second, time.Minute, 0), []time.Duration{time.Minute}},
		"fast and slow without slow": {workqueue.FastSlow(time.Second, 0, 1), []time.Duration{time.Second, 0}},
		"negative":                   {workqueue.FastSlow(-time.Second, 0, 1), []time.Duration{0}},
		"the longest of none":        {workqueue.MaxOf(), []time.Duration{0}},
		"the longest of several": {workqueue.MaxOf(workqueue.FastSlow(time.Minute, 0, 1), workqueue.ExponentialBackoff(time.Second, 0), workqueue.FastSlow(0, time.Hour, 2)),
			[]time.Duration{time.Minute, 2 * time.Second, time.Hour}},
	} {
		for i, longest := range tc.longest {
			lengths := map[time.Duration]bool{}
			for range 100 {
				delay := tc.limiter(i + 1)
				assert.LessOrEqual(t, delay, longest, "%s, failure %d", name, i+1)
				assert.GreaterOrEqual(t, delay, longest/2, "%s, failure %d", name, i+1)
				lengths[delay] = true
			}
			if longest > 0 {
				assert.Greater(t, len(lengths), 50, "%s has jitter", name)
			}
		}
	}
}

func TestBucket_SpreadsAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := workqueue.Bucket(time.Second, 3)
		delays := func(count int) (all []time.Duration) {
			for range count {
				all = append(all, limiter(1))
			}
			return all
		}
		assert.Equal(t, []time.Duration{0, 0, 0, time.Second, 2 * time.Second}, delays(5))
		time.Sleep(3500 * time.Millisecond) // of which two seconds were taken
		assert.Equal(t, []time.Duration{0, 500 * time.Millisecond}, delays(2))
		time.Sleep(time.Hour)
		assert.Equal(t, []time.Duration{0, 0, 0, time.Second}, delays(4), "no more than burst is saved up")
	})
}

func TestBucket_Bounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := workqueue.Bucket(time.Second, -1)
		assert.Zero(t, one(1))
		assert.Equal(t, time.Second, one(1))
		for _, interval := range []time.Duration{0, -time.Second} {
			none := workqueue.Bucket(interval, 1)
			for range 10 {
				assert.Zero(t, none(1))
			}
		}
	})
}

func TestQueue_RateLimiterGetsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []int
		q := workqueue.New[string](&workqueue.Options{RateLimiter: func(n int) time.Duration {
			failures = append(failures, n)
			return time.Minute
		}})
		for range 3 {
			start := time.Now()
			q.AddRateLimited("a")
			gotAll(t, q, 1)
			assert.Equal(t, time.Minute, time.Since(start))
		}
		q.Forget("a")
		q.AddRateLimited("a")
		q.AddRateLimited("b")
		assert.Equal(t, []int{1, 2, 3, 1, 1}, failures)
		q.ShutDown()
	})
}

func TestQueue_LimitersShareBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := workqueue.Bucket(time.Second, 1)
		first := workqueue.New[string](&workqueue.Options{RateLimiter: workqueue.MaxOf(fixed(time.Millisecond), bucket)})
		second := workqueue.New[string](&workqueue.Options{RateLimiter: workqueue.MaxOf(fixed(time.Millisecond), bucket)})
		start := time.Now()
		first.AddRateLimited("a")
		second.AddRateLimited("b")
		gotAll(t, first, 1)
		assert.Equal(t, time.Millisecond, time.Since(start))
		gotAll(t, second, 1)
		assert.Equal(t, time.Second, time.Since(start))
	})
}

func TestQueue_LowPrioritiesNotStarved(t *testing.T) {
	q := workqueue.New[string](nil)
	for i := range 3 {
		q.AddWithOptions(fmt.Sprint("low ", i), &workqueue.AddOptions{Priority: -100 * (i + 1)})
	}
	var handedOut []int
	for get := 1; get <= 64; get++ {
		q.Add(fmt.Sprint("high ", get))
		q.Add(fmt.Sprint("more ", get)) // there is always a higher one
		key, ok := q.Get(t.Context())
		require.True(t, ok)
		q.Done(key)
		if key[:3] == "low" {
			assert.Equal(t, fmt.Sprint("low ", len(handedOut)), key, "the oldest, whatever its priority")
			handedOut = append(handedOut, get)
		}
	}
	assert.Equal(t, []int{16, 32, 48}, handedOut)
}

func TestQueue_RaisedKeyWaitsFromThen(t *testing.T) {
	q := workqueue.New[string](nil)
	q.AddWithOptions("raised", &workqueue.AddOptions{Priority: -2})
	q.AddWithOptions("low", &workqueue.AddOptions{Priority: -3})
	q.AddWithOptions("raised", &workqueue.AddOptions{Priority: -1})
	for get := 1; get <= 32; get++ {
		q.Add(fmt.Sprint("high ", get))
		q.Add(fmt.Sprint("more ", get))
		key, _ := q.Get(t.Context())
		q.Done(key)
		switch get {
		case 16:
			assert.Equal(t, "low", key)
		case 32:
			assert.Equal(t, "raised", key)
		default:
			assert.NotContains(t, []string{"low", "raised"}, key)
		}
	}
}

func TestQueue_ShuttingDown(t *testing.T) {
	for name, shutDown := range map[string]func(q *workqueue.Queue[string]){
		"ShutDown":          func(q *workqueue.Queue[string]) { q.ShutDown() },
		"ShutDownWithDrain": func(q *workqueue.Queue[string]) { assert.NoError(t, q.ShutDownWithDrain(t.Context())) },
	} {
		q := workqueue.New[string](nil)
		assert.False(t, q.ShuttingDown())
		shutDown(q)
		assert.True(t, q.ShuttingDown(), name)
	}
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](nil)
		q.Add("a")
		go func() { assert.NoError(t, q.ShutDownWithDrain(t.Context())) }()
		synctest.Wait()
		assert.True(t, q.ShuttingDown(), "while it drains")
		assert.Equal(t, []string{"a"}, got(t, q))
	})
}
