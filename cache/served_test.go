package cache_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
)

func TestCache_KeepsObjectsWhileNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		source.emit(watch.Added, pod("shop", "a", "a", 1))
		source.emit(watch.Added, pod("shop", "b", "b", 2))
		source.emit(dynamic.Synced, nil)
		early, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		expect := func(next func() (cache.Change[object], bool), want ...string) {
			t.Helper()
			for _, one := range want {
				change, _ := next()
				assert.Equal(t, one, text(change))
			}
		}
		synctest.Wait()
		for range 2 {
			change, _ := early()
			assert.Equal(t, watch.Added, change.Type)
		}
		expect(early, "SYNCED")

		source.emit(dynamic.NotServed, nil)
		expect(early, "NOTSERVED")
		synctest.Wait()
		assert.Equal(t, []string{"shop/a", "shop/b"}, names(c.List("", nil)))
		require.NoError(t, c.WaitForSync(t.Context()))
		late, stopLate := iter.Pull(c.Changes(t.Context()))
		defer stopLate()
		for range 2 {
			late()
		}
		expect(late, "SYNCED", "NOTSERVED")

		source.emit(dynamic.Started, nil)
		source.emitUnknownDelete(pod("shop", "a", "a", 1))
		source.emit(dynamic.Synced, nil)
		synctest.Wait()
		expect(early, "DELETED a 1 was 1 final state unknown", "SYNCED")
		expect(late, "DELETED a 1 was 1 final state unknown", "SYNCED")

		source.emit(dynamic.NotServed, nil) // for a moment that no consumer sees
		source.emit(dynamic.Synced, nil)
		source.emit(watch.Modified, pod("shop", "b", "b", 9))
		synctest.Wait()
		expect(early, "MODIFIED b 9 was 2")
		expect(late, "MODIFIED b 9 was 2")
	})
}

func TestCache_NotServedBeforeSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		source.emit(dynamic.NotServed, nil)
		synctest.Wait()
		assert.False(t, c.HasSynced())
		source.emit(dynamic.Synced, nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.NoError(t, c.Health())
	})
}

func TestCache_FinalStateUnknownDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transformed := 0
		c, source := running(t, &cache.Options[object]{Transform: func(obj *object) *object { transformed++; return obj }})
		last := pod("shop", "a", "web", 7)
		source.emit(watch.Added, last)
		source.emit(dynamic.Synced, nil)
		synctest.Wait()
		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		next()
		next()

		bare := pod("shop", "a", "", 7) // has no labels
		source.emitUnknownDelete(bare)
		synctest.Wait()
		change, _ := next()
		assert.Equal(t, watch.Deleted, change.Type)
		assert.True(t, change.FinalStateUnknown)
		assert.Same(t, last, change.Object, "the last state that the cache had")
		assert.Equal(t, 1, transformed)
		assert.Empty(t, c.List("", nil))

		source.emit(watch.Added, pod("shop", "b", "web", 8))
		synctest.Wait()
		next()
		source.emit(watch.Deleted, pod("shop", "b", "web", 9))
		synctest.Wait()
		change, _ = next()
		assert.Equal(t, "DELETED b 9 was 8", text(change))
	})
}

// TestCache_WaitsAfterVersionsWentBack restores etcd from a backup: a relist is at a lower version.
func TestCache_WaitsAfterVersionsWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		source.emit(watch.Added, pod("shop", "web", "web", 1000))
		source.progress("1000")
		source.emit(dynamic.Synced, nil)
		source.emit(watch.Modified, pod("shop", "web", "web", 400))
		source.progress("500")
		synctest.Wait()
		shown := make(chan error, 1)
		go func() { shown <- c.WaitForResourceVersion(t.Context(), "501") }()
		synctest.Wait()
		require.Empty(t, shown, "the write at 501 is not in the cache")
		source.emit(watch.Modified, pod("shop", "web", "web", 501))
		source.progress("501")
		require.NoError(t, <-shown)
	})
}

func TestCache_ContextErrorsHaveCause(t *testing.T) {
	cause := errors.New("the user left")
	for name, call := range map[string]func(context.Context, *cache.Cache[object]) error{
		"Sync":    func(ctx context.Context, c *cache.Cache[object]) error { return c.WaitForSync(ctx) },
		"Wait":    func(ctx context.Context, c *cache.Cache[object]) error { return c.WaitForStop(ctx) },
		"WaitFor": func(ctx context.Context, c *cache.Cache[object]) error { return c.WaitForResourceVersion(ctx, "5") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := running(t, nil)
				synctest.Wait()
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
				defer cancel()
				err := call(ctx, c)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, cause)
				require.ErrorContains(t, err, "cache /api/v1/pods: ")
				assert.NotContains(t, err.Error(), "Run has not been called")
			})
		})
	}
}

func TestWaitForSync_WithoutRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := cache.New(newScript(), nil).WaitForSync(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.EqualError(t, err, "cache /api/v1/pods: not synced: context canceled (Run has not been called)")
}

func TestCache_DetectsMutations(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*object)
		then   func(*script)
		field  string
	}{
		"found in time":        {func(obj *object) { obj.Object["metadata"].(map[string]any)["labels"].(map[string]any)["app"] = "x" }, func(s *script) { time.Sleep(2 * time.Second); s.emit(watch.Added, pod("shop", "db", "db", 2)) }, ".metadata.labels.app"},
		"found at replacement": {func(obj *object) { obj.SetName("b") }, func(s *script) { s.emit(watch.Modified, pod("shop", "web", "web", 2)) }, ".metadata.name"},
		"found at deletion":    {func(obj *object) { delete(obj.Object, "kind") }, func(s *script) { s.emitUnknownDelete(pod("shop", "web", "web", 1)) }, ".kind"},
		"found when Run ends":  {func(obj *object) { obj.Object["a"] = []any{int64(1)} }, func(s *script) { s.fail(errors.New("over")) }, ".a"},
		"no JSON any more":     {func(obj *object) { obj.Object["a"] = func() {} }, func(s *script) { s.fail(errors.New("over")) }, "a field that has no JSON now ("},
		"nothing, in copies":   {func(obj *object) { obj.DeepCopy().SetName("b") }, func(s *script) { s.fail(errors.New("over")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newScript()
				c := cache.New(source, &cache.Options[object]{DetectMutations: true})
				var err error
				var done sync.WaitGroup
				done.Go(func() { err = c.Run(t.Context()) })
				source.emit(watch.Added, pod("shop", "web", "web", 1))
				source.emit(dynamic.Synced, nil)
				require.NoError(t, c.WaitForSync(t.Context()))
				obj, _ := c.Get("shop", "web")
				tc.change(obj)
				tc.then(source)
				done.Wait()
				if tc.field == "" {
					require.EqualError(t, err, "over")
					return
				}
				var found *cache.MutationError
				require.ErrorAs(t, err, &found)
				assert.Equal(t, "shop/web", found.Key.String())
				assert.Contains(t, found.Field, tc.field)
				assert.ErrorContains(t, err, "cache /api/v1/pods: object shop/web was changed by a reader at "+tc.field)
			})
		})
	}
}

func TestCache_MutationDetectorSwitches(t *testing.T) {
	for _, tc := range []struct {
		variable string
		option   bool
		want     bool
	}{
		{"", false, true}, {"", true, true}, {"true", false, true}, {"1", false, true}, {"nonsense", false, true},
		{"false", false, false}, {"false", true, true},
	} {
		t.Run(fmt.Sprintf("variable %q, option %t", tc.variable, tc.option), func(t *testing.T) {
			t.Setenv("ANYKIND_CACHE_MUTATION_DETECTOR", tc.variable)
			source := newScript()
			c := cache.New(source, &cache.Options[object]{DetectMutations: tc.option})
			ended := make(chan error, 1)
			go func() { ended <- c.Run(t.Context()) }()
			source.emit(watch.Added, pod("shop", "web", "web", 1))
			source.emit(dynamic.Synced, nil)
			require.NoError(t, c.WaitForSync(t.Context()))
			obj, _ := c.Get("shop", "web")
			obj.SetName("b")
			source.fail(errors.New("over"))
			var found *cache.MutationError
			assert.Equal(t, tc.want, errors.As(<-ended, &found))
		})
	}
}
