package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
)

// waiting returns the number of goroutines that wait for a cache.
func waiting[T any](c *Cache[T]) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.waiters.all)
}

func requireNoWaiters[T any](t *testing.T, c *Cache[T]) {
	t.Helper()
	assert.Empty(t, c.waiters.all)
	assert.Empty(t, c.waiters.byKey)
	assert.Empty(t, c.waiters.atProgress)
	for _, waiting := range c.waiters.byVersion {
		assert.Empty(t, waiting)
	}
}

// TestWaiters_WokenAtTheirVersion waits for the versions 2 to 301 in a random order, each three times: once with a ctx that ends before.
func TestWaiters_WokenAtTheirVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const last = 301
		c := newIdle()
		c.setResourceVersion("", "1")
		var mu sync.Mutex
		woken := map[string]int{}
		ended, end := context.WithCancel(t.Context())
		wait := func(ctx context.Context, version string, wait func(ctx context.Context) error) {
			if err := wait(ctx); ctx == ended {
				assert.ErrorIs(t, err, context.Canceled)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			woken[version]++
		}
		for _, n := range rand.Perm(last - 1) {
			version := strconv.Itoa(n + 2)
			c.RecordWrite(written(version, version))
			forWrite := func(ctx context.Context) error {
				return c.WaitForWrites(ctx, types.NamespacedName{Namespace: "shop", Name: version})
			}
			go wait(t.Context(), version, forWrite)
			go wait(t.Context(), version, func(ctx context.Context) error { return c.WaitForResourceVersion(ctx, version) })
			go wait(ended, version, forWrite)
		}
		synctest.Wait()
		assert.Equal(t, 3*(last-1), waiting(c))
		end()
		synctest.Wait()
		for n := 2; n <= last; n += 3 {
			c.setResourceVersion("", strconv.Itoa(n))
			synctest.Wait()
			require.Len(t, woken, n-1)
			require.Equal(t, 2*(last-n), waiting(c))
		}
		c.setResourceVersion("", strconv.Itoa(last))
		synctest.Wait()
		requireNoWaiters(t, c)
	})
}

func TestWaiters_VersionsWithoutOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newIdle()
		c.setResourceVersion("", "1")
		result := make(chan error, 1)
		go func() { result <- c.WaitForResourceVersion(t.Context(), "5") }()
		for _, version := range []string{"opaque", "", "2", "opaque"} {
			synctest.Wait()
			c.setResourceVersion("", version)
			synctest.Wait()
			require.Empty(t, result, version)
		}
		c.setResourceVersion("", "7")
		require.NoError(t, <-result)
	})
}

func TestWaiters_WokenByDeletionOfTheirObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newIdle()
		for _, name := range []string{"web", "db"} {
			c.RecordWrite(written(name, "5"))
			c.RecordWrite(dynamic.Write{Namespace: "shop", Name: name, UID: types.UID(name)})
		}
		results := make(chan error, 3)
		go func() { results <- c.WaitForWrites(t.Context(), web) }()
		go func() { results <- c.WaitForWrites(t.Context(), db) }()
		go func() { results <- c.WaitForWrites(t.Context()) }()
		expect := func(count int) {
			t.Helper()
			synctest.Wait()
			require.Len(t, results, count)
		}
		c.emit(watch.Added, partialPod("web", "web", "4"), "4")
		c.emit(watch.Deleted, partialPod("web", "web", "4"), "4")
		expect(0)
		c.emit(watch.Added, partialPod("web", "web", "5"), "5")
		expect(1)
		require.NoError(t, <-results, "db does not exist")
		c.emit(watch.Modified, partialPod("web", "web", "6"), "6")
		expect(0)
		c.emit(watch.Added, partialPod("web", "another", "7"), "7")
		expect(2)
		requireNoWaiters(t, c)
	})
}

// BenchmarkCache_Event applies events of one object while goroutines wait for the writes to other objects: half of them for a version,
// and half for a deletion.
func BenchmarkCache_Event(b *testing.B) {
	for _, waiters := range []int{0, 1_000, 10_000} {
		b.Run(fmt.Sprintf("%d waiters", waiters), func(b *testing.B) {
			c := newIdle()
			c.emit(watch.Added, partialPod("web", "web", "1"), "1")
			for i := range waiters {
				key := types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("pod-", i)}
				write := dynamic.Write{Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.Name)}
				if i%2 == 0 {
					write.ResourceVersion = strconv.FormatInt(1e12+int64(i), 10)
				}
				c.emit(watch.Added, partialPod(key.Name, key.Name, "1"), "1")
				c.RecordWrite(write)
				go func() { _ = c.WaitForWrites(b.Context(), key) }()
			}
			for waiting(c) < waiters {
				time.Sleep(time.Millisecond)
			}
			version := 1
			for b.Loop() {
				version++
				c.emit(watch.Modified, partialPod("web", "web", "2"), strconv.Itoa(version))
			}
		})
	}
}
