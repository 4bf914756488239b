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

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

// still is a source of objects that never change.
type still []string

func (still) Path(string) (string, error) { return "/api/v1/pods", nil }

func (s still) Follow(ctx context.Context, _ *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Object], error] {
	return func(yield func(dynamic.Change[unstructured.Object], error) bool) {
		for _, name := range s {
			if !yield(dynamic.Change[unstructured.Object]{Type: watch.Added, Object: named("v1", "Pod", "shop", name, name)}, nil) {
				return
			}
		}
		if yield(dynamic.Change[unstructured.Object]{Type: dynamic.Synced}, nil) {
			<-ctx.Done()
			yield(dynamic.Change[unstructured.Object]{}, ctx.Err())
		}
	}
}

func running(t *testing.T, source still) *cache.Cache[unstructured.Object] {
	t.Helper()
	c := cache.New(source, nil)
	go func() { _ = c.Run(t.Context()) }()
	return c
}

func TestAPanicBesideTheReconcileEndsTheControllerWithThatError(t *testing.T) {
	for where, opts := range map[string]func(*cache.Cache[unstructured.Object]) controller.Options{
		"the keys function of a Trigger, for shop/web": func(c *cache.Cache[unstructured.Object]) controller.Options {
			return controller.Options{Triggers: []controller.Trigger{controller.On(c, func(*unstructured.Object) []cache.Key { panic("out of order") })}}
		},
		"Options.Reconciled, for shop/web": func(*cache.Cache[unstructured.Object]) controller.Options {
			return controller.Options{Reconciled: func(controller.Reconciled) { panic("out of order") }}
		},
		"a worker of a controller": func(*cache.Cache[unstructured.Object]) controller.Options {
			return controller.Options{Queue: controller.QueueOptions{Metrics: controller.QueueMetrics{Worked: func(time.Duration) { panic("out of order") }}}}
		},
		"a Trigger of a controller": func(*cache.Cache[unstructured.Object]) controller.Options {
			return controller.Options{Queue: controller.QueueOptions{Metrics: controller.QueueMetrics{Added: func() { panic("out of order") }}}}
		},
	} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := running(t, still{"web"})
				chosen := opts(c)
				chosen.Workers = 3
				err := controller.Run(t.Context(), c, func(context.Context, cache.Key) (time.Duration, error) { return 0, nil }, &chosen)
				var panicked *controller.PanicError
				require.ErrorAs(t, err, &panicked)
				assert.Equal(t, where, panicked.Where)
				assert.Equal(t, "out of order", panicked.Value)
				assert.Contains(t, string(panicked.Stack), "panic_test.go")
				assert.NotEmpty(t, c.All(), "the cache is another's")
			})
		})
	}
}

func TestOnePanicEndsAControllerOnlyWhenTheOthersHaveFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := running(t, still{"web", "slow"})
		var finished atomic.Bool
		err := controller.Run(t.Context(), c, func(_ context.Context, key cache.Key) (time.Duration, error) {
			time.Sleep(time.Second) // until both are in hand
			if key.Name == "slow" {
				time.Sleep(time.Second)
				finished.Store(true)
			}
			return 0, nil
		}, &controller.Options{Workers: 2, Reconciled: func(how controller.Reconciled) {
			if how.Key.Name == "web" {
				panic("out of order")
			}
		}})
		var panicked *controller.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.True(t, finished.Load())
	})
}

func TestAPanickingReconcileIsNamedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var outcomes []error
		err := controller.Run(ctx, running(t, still{"web"}), func(context.Context, cache.Key) (time.Duration, error) {
			if len(outcomes) == 0 {
				panic("out of order")
			}
			return 0, nil
		}, &controller.Options{Reconciled: func(how controller.Reconciled) {
			if outcomes = append(outcomes, how.Err); len(outcomes) == 2 {
				cancel()
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		var panicked *controller.PanicError
		require.ErrorAs(t, outcomes[0], &panicked)
		assert.Equal(t, "the reconcile of shop/web", panicked.Where)
		assert.NoError(t, outcomes[1])
	})
}

func TestRun_PanicOfMetricsInTimerEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		added := 0
		opts := &controller.Options{Queue: controller.QueueOptions{Metrics: controller.QueueMetrics{Added: func() {
			if added++; added == 2 { // the first is the object, the second the delayed key
				panic("out of order")
			}
		}}}}
		err := controller.Run(t.Context(), running(t, still{"web"}), func(context.Context, cache.Key) (time.Duration, error) { return time.Minute, nil }, opts)
		var panicked *controller.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.Equal(t, "QueueOptions.Metrics", panicked.Where)
		assert.Contains(t, string(panicked.Stack), "panic_test.go")
	})
}

func TestLead_PanicOfNewLeaderIsReturned(t *testing.T) {
	for name, panics := range map[string]string{"when it leads": "one", "while it renews": "two", "while it stands": "zero"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := inMemory(t)
				handle := leases(t, client)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if panics == "zero" {
					go func() { _ = controller.Lead(ctx, handle, "op", as("zero"), until) }()
					time.Sleep(time.Second)
				}
				opts := as("one")
				opts.NewLeader = func(identity string) {
					if identity == panics {
						panic("out of order")
					}
				}
				err := controller.Lead(t.Context(), handle, "op", opts, func(ctx context.Context, _ int64) error {
					server.change("/leases/op", func(o map[string]any) { o["spec"].(map[string]any)["holderIdentity"] = "two" })
					<-ctx.Done()
					return ctx.Err()
				})
				var panicked *controller.PanicError
				require.ErrorAs(t, err, &panicked)
				assert.Equal(t, "LeadOptions.NewLeader", panicked.Where)
				assert.Equal(t, panics == "two", errors.Is(err, controller.ErrLeaseLost))
				if panics == "one" {
					assert.Empty(t, spec(t, server)["holderIdentity"], "it is released")
				}
				stop()
				synctest.Wait()
			})
		})
	}
}

func TestAQueueStaysUsableWhenItsMetricsPanic(t *testing.T) {
	fail := true
	queue := controller.NewQueue[string](&controller.QueueOptions{Metrics: controller.QueueMetrics{Added: func() {
		if fail {
			fail = false
			panic("out of order")
		}
	}}})
	assert.Panics(t, func() { queue.Add("a") })
	queue.Add("a")
	assert.Equal(t, 1, queue.Len())
}

func TestAPanicWhileAControllerEndsIsToldToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := controller.Run(ctx, running(t, still{"web"}), func(context.Context, cache.Key) (time.Duration, error) {
			cancel()
			return 0, nil
		}, &controller.Options{Reconciled: func(controller.Reconciled) { panic("out of order") }})
		require.ErrorIs(t, err, context.Canceled)
		var panicked *controller.PanicError
		require.ErrorAs(t, err, &panicked)
		assert.ErrorContains(t, err, "context canceled; meanwhile panic in Options.Reconciled, for shop/web: out of order")
	})
}

func TestAControllerDoesNotGoOnWithoutItsWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := controller.Run(t.Context(), running(t, still{"web"}), func(context.Context, cache.Key) (time.Duration, error) {
			runtime.Goexit() // as FailNow does
			return 0, nil
		}, nil)
		require.ErrorContains(t, err, "one of its goroutines was ended by runtime.Goexit")
	})
}

func TestAnOperatorTellsThatAHookPanicked(t *testing.T) {
	client, server := inMemory(t)
	server.override = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"1"}}}`)
		return true
	}
	handled := func(context.Context, controller.ResourceEvent) error { return nil }
	for where, opts := range map[string]controller.Options{
		"Options.Reconciled, for shop/a": {Reconciled: func(controller.Reconciled) { panic("out of order") }},
		"a watch of an Operator":         {Queue: controller.QueueOptions{Metrics: controller.QueueMetrics{Added: func() { panic("out of order") }}}},
	} {
		t.Run(where, func(t *testing.T) {
			operator := controller.NewOperator(client, &opts)
			operator.Watch("coordination.k8s.io", "v1", "leases", handled, "shop")
			var panicked *controller.PanicError
			require.ErrorAs(t, operator.Run(t.Context()), &panicked)
			assert.Equal(t, where, panicked.Where)
		})
	}
}
