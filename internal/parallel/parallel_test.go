package parallel_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/internal/parallel"
)

func TestDo_LimitsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, calls atomic.Int64
		var seen [10]atomic.Bool
		parallel.Do(3, len(seen), func(i int) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			calls.Add(1)
			seen[i].Store(true)
		})
		assert.EqualValues(t, 3, most.Load())
		assert.EqualValues(t, 10, calls.Load())
		for i := range seen {
			assert.True(t, seen[i].Load(), "index %d", i)
		}
	})
	parallel.Do(3, 0, func(int) { t.Error("no item") })
}
