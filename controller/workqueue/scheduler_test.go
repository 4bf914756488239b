package workqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/controller/workqueue"
)

func TestWithScheduler_ChoosesKeysAndDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offered [][]string
		ctx := workqueue.WithScheduler(t.Context(), &workqueue.Scheduler{
			OnGet:   func(context.Context) { time.Sleep(time.Second) },
			Choose:  func(keys []string) int { offered = append(offered, keys); return len(keys) - 1 },
			Backoff: func(key string, failures int) time.Duration { return time.Duration(failures) * time.Hour },
			Jitter:  func(time.Duration) time.Duration { return 0 },
		})
		q := workqueue.New[string](nil)
		q.Add("b")
		q.AddWithOptions("a", &workqueue.AddOptions{Priority: 1})
		go func() {
			time.Sleep(500 * time.Millisecond)
			q.Add("c") // while OnGet blocks
		}()
		start := time.Now()
		var got []string
		for range 3 {
			key, ok := q.Get(ctx)
			assert.True(t, ok)
			got = append(got, key)
		}
		assert.Equal(t, []string{"c", "b", "a"}, got)
		assert.Equal(t, [][]string{{"a", "b", "c"}, {"a", "b"}, {"a"}}, offered)
		assert.Equal(t, 3*time.Second, time.Since(start))
		q.Done("a")
		q.AddRateLimited("a")
		q.Get(ctx)
		assert.Equal(t, 3*time.Second+time.Hour+time.Second, time.Since(start))
		q.ShutDown()
		_, ok := q.Get(ctx)
		assert.False(t, ok)
	})
}

func TestWithScheduler_GetEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(workqueue.WithScheduler(t.Context(), &workqueue.Scheduler{
			OnGet:  func(ctx context.Context) { <-ctx.Done() },
			Choose: func([]string) int { return 0 },
		}))
		q := workqueue.New[string](nil)
		go func() {
			time.Sleep(time.Second)
			q.Add("a")
			time.Sleep(time.Second)
			cancel()
		}()
		_, ok := q.Get(ctx)
		assert.False(t, ok)
		assert.Equal(t, 1, q.Len(), "the key is left to another worker")
	})
}
