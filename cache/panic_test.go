package cache_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
)

// poisonous panics at the pod that is called so.
func poisonous(obj *object) *object {
	if obj.GetName() == "poison" {
		panic("it was poison")
	}
	return obj
}

func TestPanic_EndsRunAndWaiters(t *testing.T) {
	poison := func(source *script) { source.emit(watch.Added, pod("shop", "poison", "web", 2)) }
	for where, tc := range map[string]struct {
		opts   cache.Options[object]
		strike func(*script)
	}{
		`Transform of the cache of /api/v1/pods, for shop/poison`: {cache.Options[object]{Transform: poisonous}, poison},
		`the index "app" of the cache of /api/v1/pods, for shop/poison`: {cache.Options[object]{
			Indexes: map[string]func(*object) []string{"app": func(obj *object) []string { return []string{poisonous(obj).GetName()} }},
		}, poison},
		`OnInterruption of the cache of /api/v1/pods`: {cache.Options[object]{
			OnInterruption: func(dynamic.Interruption) { panic("it was poison") },
		}, func(source *script) { source.interrupt(context.Canceled) }},
		`Run of the cache of /api/v1/pods`: {cache.Options[object]{}, func(source *script) {
			source.changes <- func(*dynamic.FollowOptions) (change, error) { panic("it was poison") }
		}},
	} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newScript()
				c := cache.New(source, &tc.opts)
				var all sync.WaitGroup
				var ran, synced, shown error
				var delivered []string
				all.Go(func() { ran = c.Run(t.Context()) })
				all.Go(func() { synced = c.WaitForSync(t.Context()) })
				all.Go(func() { shown = c.WaitForResourceVersion(t.Context(), "9") })
				all.Go(func() { delivered = collect(c.Changes(t.Context()), 2) })
				source.emit(watch.Added, pod("shop", "web", "web", 1))
				synctest.Wait()
				tc.strike(source)
				all.Wait()
				for _, err := range []error{ran, synced, shown, c.WaitForStop(t.Context())} {
					var panicked *cache.PanicError
					require.ErrorAs(t, err, &panicked)
					assert.Equal(t, where, panicked.Where)
					assert.Equal(t, "it was poison", panicked.Value)
					assert.Contains(t, string(panicked.Stack), "panic_test.go")
				}
				assert.True(t, strings.HasPrefix(ran.Error(), "panic in "+where+": it was poison\n"), ran)
				assert.Equal(t, []string{"ADDED web 1"}, delivered)
				assert.Equal(t, []string{"shop/web"}, names(c.List("shop", nil)), "what there was can still be read")
			})
		})
	}
}

func TestRun_ReportsGoexit(t *testing.T) {
	source := newScript()
	c := cache.New(source, &cache.Options[object]{Transform: func(*object) *object {
		runtime.Goexit() // as FailNow does in tests
		return nil
	}})
	go func() { _ = c.Run(t.Context()) }()
	source.emit(watch.Added, pod("shop", "web", "web", 1))
	require.ErrorContains(t, c.WaitForSync(t.Context()), "run cache /api/v1/pods: its goroutine was ended by runtime.Goexit")
}
