package controller_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"sync"
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

// laggedSource is a source that has a lease "first" at once and the lease "second" after a delay.
type laggedSource time.Duration

func (laggedSource) Path(string) (string, error) { return "/apis/coordination.k8s.io/v1/leases", nil }

func (l laggedSource) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Object], error] {
	lease := func(name string) *unstructured.Object {
		return controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", name, name)
	}
	return func(yield func(dynamic.Change[unstructured.Object], error) bool) {
		yield(dynamic.Change[unstructured.Object]{Type: watch.Added, Object: lease("first")}, nil)
		opts.OnProgress("1")
		yield(dynamic.Change[unstructured.Object]{Type: dynamic.Synced}, nil)
		select {
		case <-time.After(time.Duration(l)):
			yield(dynamic.Change[unstructured.Object]{Type: watch.Added, Object: lease("second")}, nil)
			opts.OnProgress("2")
			<-ctx.Done()
		case <-ctx.Done():
		}
		yield(dynamic.Change[unstructured.Object]{}, ctx.Err())
	}
}

func TestRun_WaitsForTrackedWrites(t *testing.T) {
	for name, own := range map[string]bool{"of its own cache": true, "of a trigger's cache": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := controllertest.New(t)
				leases := controllertest.Leases(t, client)
				_, err := leases.Create(t.Context(), controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "first", ""), nil)
				require.NoError(t, err)
				c := running(t, laggedSource(time.Minute))
				reconciled := c
				opts := &controller.Options{}
				if !own {
					reconciled = running(t, staticSource{"web"})
					opts.Triggers = []controller.Trigger{controller.Watches(c, func(*unstructured.Object) []types.NamespacedName { return nil })}
				}
				tracked := c.TrackWrites(leases)
				ctx, cancel := context.WithCancel(t.Context())
				start := time.Now()
				calls := 0
				err = controller.Run(ctx, reconciled, func(ctx context.Context, _ types.NamespacedName) (time.Duration, error) {
					if calls++; calls == 1 {
						_, err := tracked.Create(ctx, controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "second", ""), nil)
						assert.NoError(t, err)
						return 0, errors.New("again, at once")
					}
					_, found := c.Get("shop", "second")
					assert.True(t, found, "the reconcile finds what it has written")
					assert.GreaterOrEqual(t, time.Since(start), time.Minute)
					cancel()
					return 0, nil
				}, opts)
				require.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, 2, calls)
			})
		})
	}
}

func TestRun_OpaqueVersionIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := running(t, staticSource{"web"})
		c.RecordWrite(dynamic.Write{Namespace: "shop", Name: "web", ResourceVersion: "opaque"})
		ctx, cancel := context.WithCancel(t.Context())
		err := controller.Run(ctx, c, func(context.Context, types.NamespacedName) (time.Duration, error) { cancel(); return 0, nil }, nil)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// withoutWaits returns options of a queue that require that waits for writes do not count as work.
func withoutWaits(t *testing.T) workqueue.Options {
	return workqueue.Options{Metrics: workqueue.Metrics{OnDone: func(worked time.Duration) { assert.Zero(t, worked) }}}
}

// TestRun_MissingWritesDelayTheirKeyAlone has one worker and a write that never arrives: made by a reconcile or elsewhere.
func TestRun_MissingWritesDelayTheirKeyAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(ctx context.Context, c *cache.Cache[unstructured.Object], leases *dynamic.Resource)
		error string
	}{
		"to another object": {func(ctx context.Context, c *cache.Cache[unstructured.Object], leases *dynamic.Resource) {
			_, err := c.TrackWrites(leases).Create(ctx, controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "second", ""), nil)
			assert.NoError(t, err)
		}, "cache /apis/coordination.k8s.io/v1/leases: the write of shop/second not received within 2m0s"},
		"to its own object, elsewhere": {func(_ context.Context, c *cache.Cache[unstructured.Object], _ *dynamic.Resource) {
			c.RecordWrite(dynamic.Write{Namespace: "shop", Name: "first", ResourceVersion: "100"})
		}, "cache /apis/coordination.k8s.io/v1/leases: the write of shop/first not received within 2m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := controllertest.New(t)
				leases := controllertest.Leases(t, client)
				_, err := leases.Create(t.Context(), controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "first", ""), nil)
				require.NoError(t, err)
				c := running(t, laggedSource(time.Hour))
				log, lines := controllertest.Logger()
				ticks := make(script)
				ticker := running(t, ticks)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				var ticking sync.WaitGroup
				ticking.Go(func() {
					ticks.sync()
					for n := 0; ctx.Err() == nil; n++ {
						time.Sleep(time.Second)
						ticks.emit(watch.Modified, version(controllertest.Pod("tick"), strconv.Itoa(n)))
					}
				})
				start := time.Now()
				reconciles := map[string][]time.Duration{}
				err = controller.Run(ctx, c, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
					at := time.Since(start).Truncate(time.Second)
					if key.Name == "first" && len(reconciles["first"]) == 0 {
						tc.write(ctx, c, leases)
					}
					reconciles[key.Name] = append(reconciles[key.Name], at)
					return 0, nil
				}, &controller.Options{Logger: log, Queue: withoutWaits(t), Triggers: []controller.Trigger{controller.Watches(ticker, func(*unstructured.Object) []types.NamespacedName {
					return []types.NamespacedName{{Namespace: "shop", Name: "first"}, {Namespace: "shop", Name: "third"}}
				})}})
				ticking.Wait()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.GreaterOrEqual(t, len(slices.Compact(reconciles["third"])), 299, "each second")
				require.Greater(t, len(reconciles["first"]), 100)
				assert.Equal(t, []time.Duration{0, 2 * time.Minute}, reconciles["first"][:2])
				assert.Equal(t, []string{
					`level=WARN msg="a cache has not received writes for 10s: the key waits" key=shop/first`,
					`level=WARN msg="the next reconcile may find an older state than was written" key=shop/first error="` + tc.error + `"`,
				}, lines())
			})
		})
	}
}

// versionSource is a source of the lease "first". It emits the versions that it receives, negative ones as the progress of the stream
// alone.
type versionSource chan int

func (versionSource) Path(string) (string, error) { return "/apis/coordination.k8s.io/v1/leases", nil }

func (s versionSource) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[unstructured.Object], error] {
	emit := func(yield func(dynamic.Change[unstructured.Object], error) bool, n int) {
		if n > 0 {
			lease := controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "first", "u")
			yield(dynamic.Change[unstructured.Object]{Type: watch.Modified, Object: version(lease, strconv.Itoa(n))}, nil)
		}
		opts.OnProgress(strconv.Itoa(max(n, -n)))
	}
	return func(yield func(dynamic.Change[unstructured.Object], error) bool) {
		emit(yield, 1)
		yield(dynamic.Change[unstructured.Object]{Type: dynamic.Synced}, nil)
		for {
			select {
			case n := <-s:
				emit(yield, n)
			case <-ctx.Done():
				yield(dynamic.Change[unstructured.Object]{}, ctx.Err())
				return
			}
		}
	}
}

// TestRun_WritesOfOthersDoNotStarveKey has another part of the process write to the reconciled object without end.
func TestRun_WritesOfOthersDoNotStarveKey(t *testing.T) {
	deletion := func(int) dynamic.Write { return dynamic.Write{Namespace: "shop", Name: "first", UID: "u"} }
	update := func(n int) dynamic.Write {
		return dynamic.Write{Namespace: "shop", Name: "first", UID: "u", ResourceVersion: strconv.Itoa(n)}
	}
	for name, tc := range map[string]struct {
		write    func(n int) dynamic.Write
		interval time.Duration // between two writes
		lag      time.Duration // of the watch; 0 for none of the writes to arrive
		maxWait  time.Duration // between two reconciles
	}{
		"interval shorter than lag": {update, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond},
		"interval longer than lag":  {update, 200 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond},
		"updates never arrive":      {update, time.Minute, 0, 2 * time.Minute},
		"deletions never arrive":    {deletion, time.Minute, 0, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := make(versionSource)
				requeue := tc.maxWait / 100
				objects := running(t, source)
				ctx, cancel := context.WithTimeout(t.Context(), 100*tc.maxWait)
				defer cancel()
				var writing sync.WaitGroup
				writing.Go(func() {
					for n := 2; ctx.Err() == nil; n++ {
						objects.RecordWrite(tc.write(n))
						if tc.lag > 0 {
							time.AfterFunc(tc.lag, func() {
								select {
								case source <- n:
								case <-ctx.Done():
								}
							})
						}
						time.Sleep(tc.interval)
					}
				})
				synctest.Wait()
				last := time.Now()
				reconciles := 0
				err := controller.Run(ctx, objects, func(context.Context, types.NamespacedName) (time.Duration, error) {
					assert.LessOrEqual(t, time.Since(last), tc.maxWait+requeue)
					last = time.Now()
					reconciles++
					return requeue, nil
				}, nil)
				writing.Wait()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.GreaterOrEqual(t, reconciles, 98)
			})
		})
	}
}

// TestRun_WaitKeepsPriority has one worker, which is busy when the write to an object of the initial list arrives and when another
// object changes.
func TestRun_WaitKeepsPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := make(versionSource)
		objects := running(t, source)
		objects.RecordWrite(dynamic.Write{Namespace: "shop", Name: "first", UID: "u", ResourceVersion: "5"})
		changes := make(script)
		others := controller.Watches(running(t, changes), func(pod *unstructured.Object) []types.NamespacedName { return []types.NamespacedName{cache.KeyOf(pod)} })
		go func() {
			changes.sync()
			time.Sleep(time.Second)
			changes.emit(watch.Added, controllertest.Pod("busy"))
			time.Sleep(time.Second)
			source <- -5
			time.Sleep(time.Second)
			changes.emit(watch.Added, controllertest.Pod("changed"))
		}()
		ctx, cancel := context.WithCancel(t.Context())
		var order []string
		err := controller.Run(ctx, objects, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
			switch order = append(order, key.Name); key.Name {
			case "busy":
				time.Sleep(time.Minute)
			case "first":
				cancel()
			}
			return 0, nil
		}, &controller.Options{Triggers: []controller.Trigger{others}})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, []string{"busy", "changed", "first"}, order)
	})
}

// TestRun_RelistedDeletionHasNormalPriority has one worker, which is busy when a relist reveals a deletion and a resync follows.
func TestRun_RelistedDeletionHasNormalPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := make(script)
		c := cache.New(source, &cache.Options[unstructured.Object]{ResyncPeriod: time.Minute})
		go func() { _ = c.Run(t.Context()) }()
		go func() {
			source.emit(watch.Added, controllertest.Pod("unchanged"), controllertest.Pod("deleted"))
			source.sync()
			time.Sleep(50 * time.Second)
			source.emit(watch.Added, controllertest.Pod("busy"))
			time.Sleep(15 * time.Second)
			source <- dynamic.Change[unstructured.Object]{Type: watch.Deleted, Object: controllertest.Pod("deleted"), FinalStateUnknown: true}
		}()
		ctx, cancel := context.WithCancel(t.Context())
		var order []string
		err := controller.Run(ctx, c, func(_ context.Context, key types.NamespacedName) (time.Duration, error) {
			if time.Sleep(time.Millisecond); c.HasSynced() && len(order) == 0 && key.Name != "busy" {
				return 0, nil // of the initial list
			}
			if order = append(order, key.Name); key.Name == "busy" {
				time.Sleep(30 * time.Second)
			}
			if len(order) == 3 {
				cancel()
			}
			return 0, nil
		}, nil)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, []string{"busy", "deleted", "unchanged"}, order)
	})
}

func TestRun_EndsWhileWaitingForWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := controllertest.New(t)
		leases := controllertest.Leases(t, client)
		_, err := leases.Create(t.Context(), controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "first", ""), nil)
		require.NoError(t, err)
		c := running(t, laggedSource(time.Hour))
		tracked := c.TrackWrites(leases)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		calls := 0
		results := 0
		err = controller.Run(ctx, c, func(ctx context.Context, _ types.NamespacedName) (time.Duration, error) {
			calls++
			_, err := tracked.Create(ctx, controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "second", ""), nil)
			assert.NoError(t, err)
			return time.Second, nil
		}, &controller.Options{OnReconcile: func(controller.ReconcileResult) { results++ }})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(start), "without the grace of a running reconcile")
		assert.Equal(t, 1, calls)
		assert.Equal(t, 1, results)
	})
}
