package controller_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

// staticSource is a source of objects that never change.
type staticSource []string

func (staticSource) Path(string) (string, error) { return "/api/v1/pods", nil }

func (s staticSource) Follow(ctx context.Context, _ *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Object], error] {
	return func(yield func(dynamic.Change[unstructured.Object], error) bool) {
		for _, name := range s {
			if !yield(dynamic.Change[unstructured.Object]{Type: watch.Added, Object: controllertest.Named("v1", "Pod", "shop", name, name)}, nil) {
				return
			}
		}
		if yield(dynamic.Change[unstructured.Object]{Type: dynamic.Synced}, nil) {
			<-ctx.Done()
			yield(dynamic.Change[unstructured.Object]{}, ctx.Err())
		}
	}
}

func running(t *testing.T, source cache.Source[unstructured.Object]) *cache.Cache[unstructured.Object] {
	t.Helper()
	c := cache.New(source, nil)
	go func() { _ = c.Run(t.Context()) }()
	return c
}

func TestRun_ReturnsPanicsOfCallbacks(t *testing.T) {
	for where, opts := range map[string]func(*cache.Cache[unstructured.Object]) controller.Options{
		"the keys function of a Trigger, for shop/web": func(c *cache.Cache[unstructured.Object]) controller.Options {
			return controller.Options{Triggers: []controller.Trigger{controller.Watches(c, func(*unstructured.Object) []types.NamespacedName { panic("out of order") })}}
		},
		"Options.OnReconcile, for shop/web": func(*cache.Cache[unstructured.Object]) controller.Options {
			return controller.Options{OnReconcile: func(controller.ReconcileResult) { panic("out of order") }}
		},
		"a worker of a controller": func(*cache.Cache[unstructured.Object]) controller.Options {
			return controller.Options{Queue: workqueue.Options{Metrics: workqueue.Metrics{OnDone: func(time.Duration) { panic("out of order") }}}}
		},
		"a Trigger of a controller": func(*cache.Cache[unstructured.Object]) controller.Options {
			return controller.Options{Queue: workqueue.Options{Metrics: workqueue.Metrics{OnAdd: func() { panic("out of order") }}}}
		},
		"a wait for writes of a controller": func(c *cache.Cache[unstructured.Object]) controller.Options {
			c.RecordWrite(dynamic.Write{Namespace: "shop", Name: "web", UID: "web"}) // a deletion that does not arrive
			adds := 0
			return controller.Options{Queue: workqueue.Options{Metrics: workqueue.Metrics{OnAdd: func() {
				if adds++; adds == 2 {
					panic("out of order")
				}
			}}}}
		},
	} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := running(t, staticSource{"web"})
				chosen := opts(c)
				chosen.Workers = 3
				err := controller.Run(t.Context(), c, func(context.Context, types.NamespacedName) (time.Duration, error) { return 0, nil }, &chosen)
				var panicked *cache.PanicError
				require.ErrorAs(t, err, &panicked)
				assert.Equal(t, where, panicked.Where)
				assert.Equal(t, "out of order", panicked.Value)
				assert.Contains(t, string(panicked.Stack), "panic_test.go")
				assert.NotEmpty(t, c.List("", nil), "the cache is another's")
			})
		})
	}
}

func TestRun_PanicWaitsForOtherWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := running(t, staticSource{"web", "slow"})
		var finished atomic.Bool
		err := controller.Run(t.Context(), c, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
			time.Sleep(time.Second) // until both are in hand
			if key.Name == "slow" {
				time.Sleep(time.Second)
				finished.Store(true)
			}
			return 0, nil
		}, &controller.Options{Workers: 2, OnReconcile: func(how controller.ReconcileResult) {
			if how.Key.Name == "web" {
				panic("out of order")
			}
		}})
		var panicked *cache.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.True(t, finished.Load())
	})
}

func TestRun_RetriesPanickingReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var outcomes []error
		err := controller.Run(ctx, running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) {
			if len(outcomes) == 0 {
				panic("out of order")
			}
			return 0, nil
		}, &controller.Options{OnReconcile: func(how controller.ReconcileResult) {
			if outcomes = append(outcomes, how.Err); len(outcomes) == 2 {
				cancel()
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		var panicked *cache.PanicError
		require.ErrorAs(t, outcomes[0], &panicked)
		assert.Equal(t, "the reconcile, for shop/web", panicked.Where)
		assert.NoError(t, outcomes[1])
	})
}

func TestRun_ReturnsPanicAfterFailedReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := controller.Run(t.Context(), running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) {
			return 0, errors.New("not yet")
		}, &controller.Options{OnReconcile: func(controller.ReconcileResult) { panic("out of order") }})
		var panicked *cache.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.Equal(t, "Options.OnReconcile, for shop/web", panicked.Where)
	})
}

func TestRun_PanicOfMetricsInTimerEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		added := 0
		opts := &controller.Options{Queue: workqueue.Options{Metrics: workqueue.Metrics{OnAdd: func() {
			if added++; added == 2 { // the first is the object, the second the delayed key
				panic("out of order")
			}
		}}}}
		err := controller.Run(t.Context(), running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) { return time.Minute, nil }, opts)
		var panicked *cache.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.Equal(t, "Options.Queue.Metrics", panicked.Where)
		assert.Contains(t, string(panicked.Stack), "panic_test.go")
	})
}

func TestRun_ReturnsPanicDuringShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := controller.Run(ctx, running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) {
			cancel()
			return 0, nil
		}, &controller.Options{OnReconcile: func(controller.ReconcileResult) { panic("out of order") }})
		require.ErrorIs(t, err, context.Canceled)
		var panicked *cache.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.ErrorContains(t, err, "context canceled; meanwhile panic in Options.OnReconcile, for shop/web: out of order")
	})
}

func TestRun_ReturnsGoexitOfWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := controller.Run(t.Context(), running(t, staticSource{"web"}), func(context.Context, types.NamespacedName) (time.Duration, error) {
			runtime.Goexit() // as FailNow does
			return 0, nil
		}, nil)
		require.ErrorContains(t, err, "one of its goroutines was ended by runtime.Goexit")
	})
}

func TestOperator_ReturnsPanicsOfCallbacks(t *testing.T) {
	client, server := controllertest.New(t)
	server.Override = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"}}}`)
		return true
	}
	handled := func(context.Context, cache.Change[unstructured.Object]) error { return nil }
	for where, opts := range map[string]controller.Options{
		"Options.OnReconcile, for shop/a": {OnReconcile: func(controller.ReconcileResult) { panic("out of order") }},
		"a watch of an Operator":          {Queue: workqueue.Options{Metrics: workqueue.Metrics{OnAdd: func() { panic("out of order") }}}},
	} {
		t.Run(where, func(t *testing.T) {
			operator := controller.NewOperator(&opts)
			operator.Watch(controllertest.Leases(t, client), handled)
			var panicked *cache.PanicError
			require.ErrorAs(t, operator.Run(t.Context()), &panicked)
			assert.Equal(t, where, panicked.Where)
		})
	}
}
