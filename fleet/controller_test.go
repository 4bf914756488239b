package fleet_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// reconciles records the keys of reconciles.
type reconciles struct {
	mu   sync.Mutex
	keys []string
}

func (r *reconciles) record(key fleet.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = append(r.keys, key.String())
}

// drain returns the sorted keys since the last call.
func (r *reconciles) drain() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.keys
	r.keys = nil
	slices.Sort(taken)
	return taken
}

// startRun runs a controller until the test ends.
func startRun(t *testing.T, pods *fleet.Cache[unstructured.Object], reconcile fleet.ReconcileFunc, opts *fleet.RunOptions) {
	t.Helper()
	opts.Logger = slog.New(slog.DiscardHandler)
	run(t, func(ctx context.Context) error { return fleet.Run(ctx, pods, reconcile, opts) })
}

func TestRun_ReconcilesEachClusterOnceSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web", "db")
		hanging := newPodCluster("hanging", "web")
		hanging.Handle("GET /apis", scripted.Hang)
		source, members := dynamicSource()
		f := newFleet(t, source, east, hanging)
		members().Set("east", east.config("first"))
		members().Set("hanging", hanging.config("first"))
		pods := newPods(t, f)
		var r reconciles
		var results sync.Map
		failures := 1
		startRun(t, pods, func(_ context.Context, key fleet.Key) (time.Duration, error) {
			r.record(key)
			if failures > 0 {
				failures--
				return 0, errors.New("conflict")
			}
			return 0, nil
		}, &fleet.RunOptions{Options: controller.Options{Workers: 1, OnReconcile: func(result controller.ReconcileResult) {
			results.Store(result.Cluster+" "+result.GVR.Resource, nil)
		}}})
		time.Sleep(9 * time.Second)
		assert.Len(t, slices.Compact(r.drain()), 2, "the hanging cluster delays nothing")
		_, found := results.Load("east pods")
		assert.True(t, found)
		east.events <- scripted.Event("DELETED", podJSON("east", "db", 101))
		synctest.Wait()
		assert.Equal(t, []string{"east/shop/db"}, r.drain())
		hanging.Handle("GET /apis")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"hanging/shop/web"}, r.drain())
		members().Remove("east")
		time.Sleep(time.Minute)
		assert.Empty(t, r.drain(), "objects of a removed cluster are not reconciled")
	})
}

func TestRun_LimitsReconcilesOfSlowCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newPodCluster("slow", "a", "b", "c", "d")
		fast := newPodCluster("fast", "a", "b", "c", "d")
		source, members := dynamicSource()
		f := newFleet(t, source, slow, fast)
		members().Set("slow", slow.config("first"))
		pods := newPods(t, f)
		var r reconciles
		var ended reconciles
		startRun(t, pods, func(ctx context.Context, key fleet.Key) (time.Duration, error) {
			r.record(key)
			if key.Cluster == "slow" {
				select {
				case <-ctx.Done():
					assert.ErrorIs(t, context.Cause(ctx), cache.ErrRemoved)
					ended.record(key)
					return 0, ctx.Err()
				case <-time.After(time.Hour):
				}
			}
			return 0, nil
		}, &fleet.RunOptions{Options: controller.Options{Workers: 3}, WorkersPerCluster: 2})
		time.Sleep(time.Minute)
		assert.Len(t, r.drain(), 2)
		members().Set("fast", fast.config("first"))
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"fast/shop/a", "fast/shop/b", "fast/shop/c", "fast/shop/d"}, r.drain())
		time.Sleep(time.Hour)
		assert.Len(t, r.drain(), 2, "the rest of the slow cluster")
		members().Remove("slow")
		time.Sleep(2 * time.Hour)
		assert.Len(t, ended.drain(), 2)
		assert.Empty(t, r.drain())
	})
}

func TestRun_TriggersOfOtherCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web")
		east.Serve("/v1 pods pod Pod po\n/v1 configmaps configmap ConfigMap cm")
		settings := make(chan string)
		east.Handle("WATCH /api/v1/configmaps", scripted.WatchChannel(settings))
		f := newFleet(t, static(east), east)
		pods := newPods(t, f)
		configMaps := fleet.NewCache[unstructured.Object](f, "configmaps", nil)
		run(t, configMaps.Run)
		var r reconciles
		startRun(t, pods, func(_ context.Context, key fleet.Key) (time.Duration, error) {
			r.record(key)
			return 0, nil
		}, &fleet.RunOptions{Triggers: []fleet.Trigger{fleet.Watches(configMaps, func(cluster string, obj *unstructured.Object) []fleet.Key {
			return []fleet.Key{{Cluster: cluster, NamespacedName: cache.KeyOf(obj)}}
		})}})
		time.Sleep(5 * time.Second)
		assert.Empty(t, r.drain(), "the ConfigMaps have not synced")
		settings <- scripted.InitialEventsEnd("v1", "ConfigMap", "100")
		synctest.Wait()
		assert.Equal(t, []string{"east/shop/web"}, r.drain())
		settings <- scripted.Event("ADDED", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"shop","name":"web","uid":"c","resourceVersion":"101"}}`)
		synctest.Wait()
		assert.Equal(t, []string{"east/shop/web"}, r.drain())
	})
}

func TestRun_ShardsOfClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := make([]string, 0, 16)
		for i := range cap(pods) {
			pods = append(pods, string(rune('a'+i)))
		}
		east := newPodCluster("east", pods...)
		west := newPodCluster("west", pods...)
		f := newFleet(t, static(east, west), east, west)
		halves := shard.Split(shard.UID, 2)
		all := fleet.NewCache(f, "pods", &fleet.CacheOptions[unstructured.Object]{Options: cache.Options[unstructured.Object]{Shard: shard.New(shard.UID, shard.All()...)}})
		run(t, all.Run)
		var r reconciles
		var again time.Duration
		startRun(t, all, func(_ context.Context, key fleet.Key) (time.Duration, error) {
			r.record(key)
			_, found := all.Get(key)
			assert.True(t, found, "an object outside of the shard may exist")
			return again, nil
		}, &fleet.RunOptions{})
		require.NoError(t, all.WaitForSync(t.Context()))
		time.Sleep(time.Second)
		assert.Len(t, r.drain(), 32)
		require.NoError(t, all.SetShard(halves[0]))
		time.Sleep(time.Minute)
		assert.Empty(t, r.drain())
		kept := len(names(all.List("", nil)))
		assert.Less(t, kept, 32)
		require.ErrorContains(t, all.SetShard(shard.New(shard.Namespace)), `by "metadata.namespace", but Options.Shard is by "metadata.uid"`)
		require.NoError(t, all.SetShard(halves[0].Union(halves[1])))
		time.Sleep(time.Minute)
		assert.Len(t, r.drain(), 32-kept)
	})
}

// TestRun_DroppedKeyResumesParkedKey has a key that leaves the shard after it has been resumed, before a worker is free.
func TestRun_DroppedKeyResumesParkedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half := shard.Split(shard.UID, 2)[0]
		var kept, left []string
		for i := range 26 {
			name := string(rune('a'+i)) + "-pod" // names that differ in the last character have close hashes
			if half.Matches("shop", types.UID("east-"+name)) {
				kept = append(kept, name)
			} else {
				left = append(left, name)
			}
		}
		east := newPodCluster("east", left[0], left[1], left[2], kept[0], kept[1])
		north := newPodCluster("north", "a")
		west := newPodCluster("west", "a")
		source, members := dynamicSource()
		f := newFleet(t, source, east, north, west)
		pods := fleet.NewCache(f, "pods", &fleet.CacheOptions[unstructured.Object]{Options: cache.Options[unstructured.Object]{Shard: shard.New(shard.UID, shard.All()...)}})
		run(t, pods.Run)
		ends := map[string]chan struct{}{"east": make(chan struct{}), "north": make(chan struct{}), "west": make(chan struct{})}
		defer close(ends["north"])
		var r reconciles
		startRun(t, pods, func(_ context.Context, key fleet.Key) (time.Duration, error) {
			r.record(key)
			<-ends[key.Cluster]
			return 0, nil
		}, &fleet.RunOptions{Options: controller.Options{Workers: 2}, WorkersPerCluster: 1})
		for _, c := range []*podCluster{east, north, west} { // a reconcile of east and of north, and parked keys of east
			members().Set(c.name, c.config("first"))
			time.Sleep(5 * time.Second)
		}
		all := r.drain()
		require.Len(t, all, 2)
		close(ends["east"])
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"west/shop/a"}, r.drain(), "the resumed key of east has no worker")
		require.NoError(t, pods.SetShard(half))
		time.Sleep(5 * time.Second)
		close(ends["west"])
		time.Sleep(5 * time.Second)
		assert.Subset(t, append(all, r.drain()...), []string{"east/shop/" + kept[0], "east/shop/" + kept[1]})
	})
}

// TestRun_RemovedClusterForgetsFailures removes a cluster with a failing key, and adds it again an hour later. The retries of the new member
// begin with a short backoff, also if the key waited for a worker of its cluster at the removal.
func TestRun_RemovedClusterForgetsFailures(t *testing.T) {
	for _, isParked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			east := newPodCluster("east", "failing", "slow")
			source, members := dynamicSource()
			f := newFleet(t, source, east)
			pods := newPods(t, f)
			members().Set("east", east.config("first"))
			var mu sync.Mutex
			var times []time.Time
			var blocks atomic.Bool
			attempts := func() []time.Time { // since the last call
				mu.Lock()
				defer mu.Unlock()
				all := times
				times = nil
				return all
			}
			startRun(t, pods, func(ctx context.Context, key fleet.Key) (time.Duration, error) {
				if key.Name == "failing" {
					mu.Lock()
					defer mu.Unlock()
					times = append(times, time.Now())
					return 0, errors.New("no")
				}
				if blocks.Load() {
					<-ctx.Done()
				}
				return 10 * time.Minute, nil
			}, &fleet.RunOptions{Options: controller.Options{Workers: 2, Logger: slog.New(slog.DiscardHandler)}, WorkersPerCluster: 1})
			time.Sleep(9 * time.Minute)
			require.Greater(t, len(attempts()), 10)
			blocks.Store(isParked)
			time.Sleep(time.Hour)
			blocks.Store(false)
			members().Remove("east")
			time.Sleep(time.Hour)
			attempts()
			members().Set("east", east.config("first"))
			time.Sleep(5 * time.Minute)
			after := attempts()
			require.Greater(t, len(after), 1)
			assert.Less(t, after[1].Sub(after[0]), time.Second)
		})
	}
}

// TestRun_PredicatesDropUpdates changes a pod with predicates for the reconciled pods, and for pods of a Trigger that reconcile "db".
func TestRun_PredicatesDropUpdates(t *testing.T) {
	label := []controller.Predicate{controller.LabelChanged}
	both := []string{"east/shop/db", "east/shop/web"}
	for name, tc := range map[string]struct {
		own, triggered []controller.Predicate
		event          string
		want           []string
	}{
		"none":              {nil, nil, scripted.Event("MODIFIED", podJSON("east", "web", 101)), both},
		"own":               {label, nil, scripted.Event("MODIFIED", podJSON("east", "web", 101)), both[:1]},
		"trigger":           {nil, label, scripted.Event("MODIFIED", podJSON("east", "web", 101)), both[1:]},
		"all must pass":     {append(label, controller.ResourceVersionChanged), label, scripted.Event("MODIFIED", podJSON("east", "web", 101)), nil},
		"passing update":    {label, label, scripted.Event("MODIFIED", strings.Replace(podJSON("east", "web", 101), `"app":"web"`, `"app":"new"`, 1)), both},
		"deletion":          {label, label, scripted.Event("DELETED", podJSON("east", "web", 101)), both},
		"creation":          {label, nil, scripted.Event("ADDED", podJSON("east", "new", 101)), []string{"east/shop/db", "east/shop/new"}},
		"update of another": {label, nil, scripted.Event("MODIFIED", podJSON("east", "db", 101)), both[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				east := newPodCluster("east", "web", "db")
				pods := newPods(t, newFleet(t, static(east), east))
				var r reconciles
				startRun(t, pods, func(_ context.Context, key fleet.Key) (time.Duration, error) {
					r.record(key)
					return 0, nil
				}, &fleet.RunOptions{
					Options: controller.Options{Predicates: tc.own},
					Triggers: []fleet.Trigger{fleet.Watches(pods, func(cluster string, _ *unstructured.Object) []fleet.Key {
						return []fleet.Key{{Cluster: cluster, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "db"}}}
					}, tc.triggered...)},
				})
				time.Sleep(5 * time.Second)
				require.Equal(t, both, slices.Compact(r.drain()), "the initial list")
				east.events <- tc.event
				time.Sleep(5 * time.Second)
				assert.Equal(t, tc.want, slices.Compact(r.drain()))
			})
		})
	}
}

func TestRun_PanicOfCallbackEndsRun(t *testing.T) {
	defect := func(controller.UpdateEvent) bool { panic("defect") }
	for where, opts := range map[string]func(*fleet.Cache[unstructured.Object]) *fleet.RunOptions{
		"the keys function of a Trigger, for cluster east": func(pods *fleet.Cache[unstructured.Object]) *fleet.RunOptions {
			return &fleet.RunOptions{Triggers: []fleet.Trigger{fleet.Watches(pods, func(string, *unstructured.Object) []fleet.Key { panic("defect") })}}
		},
		"a Predicate, for shop/web": func(*fleet.Cache[unstructured.Object]) *fleet.RunOptions {
			return &fleet.RunOptions{Options: controller.Options{Predicates: []controller.Predicate{defect}}}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			east := newPodCluster("east", "web")
			pods := newPods(t, newFleet(t, static(east), east))
			run(t, func(ctx context.Context) error {
				time.Sleep(time.Second) // after the initial list
				select {
				case east.events <- scripted.Event("MODIFIED", podJSON("east", "web", 101)):
				case <-ctx.Done():
				}
				<-ctx.Done()
				return ctx.Err()
			})
			var panicked *cache.PanicError
			err := fleet.Run(t.Context(), pods, func(context.Context, fleet.Key) (time.Duration, error) { return 0, nil }, opts(pods))
			require.ErrorAs(t, err, &panicked)
			assert.Equal(t, where, panicked.Where)
		})
	}
}

func TestReplica_SpreadsAndMovesFewClusters(t *testing.T) {
	const clusters = 8000
	counts := make([]int, 8)
	moved := 0
	for i := range clusters {
		name := "cluster-" + time.Duration(i).String()
		replica := fleet.Replica(name, 8)
		counts[replica]++
		if next := fleet.Replica(name, 9); next != replica {
			assert.Equal(t, 8, next, "clusters move to the new replica alone")
			moved++
		}
	}
	for replica, count := range counts {
		assert.InDelta(t, clusters/8, count, clusters/8*0.15, "replica %d", replica)
	}
	assert.InDelta(t, clusters/9, moved, clusters/9*0.15)
	assert.Zero(t, fleet.Replica("east", 1))
}
