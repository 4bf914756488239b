package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/fleet"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// names returns the objects as sorted "cluster/name".
func names(seq func(func(string, *unstructured.Object) bool)) (all []string) {
	for cluster, obj := range seq {
		all = append(all, cluster+"/"+obj.GetName())
	}
	slices.Sort(all)
	return all
}

func TestCache_ReadsAndChangesOfAllClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web", "db")
		west := newPodCluster("west", "web")
		f := newFleet(t, static(east, west), east, west)
		pods := newPods(t, f)
		require.EqualError(t, fleet.NewCache[unstructured.Object](f, "pods", nil).Health(), "cache of pods: not synced: Run has not been called")
		changes := consume(t, pods)
		require.NoError(t, pods.WaitForSync(t.Context()))
		require.NoError(t, pods.Health())
		require.NoError(t, f.Health())
		synctest.Wait()
		assert.ElementsMatch(t, []string{"ADDED east/web", "ADDED east/db", "ADDED west/web", "SYNCED east", "SYNCED west"}, changes.drain())

		assert.Equal(t, []string{"east/db", "east/web", "west/web"}, names(pods.List("", nil)))
		assert.Empty(t, names(pods.List("home", nil)))
		indexed, err := pods.ByIndex("app", "web")
		require.NoError(t, err)
		assert.Len(t, names(indexed), 3)
		_, err = pods.ByIndex("node", "a")
		require.EqualError(t, err, `cache of pods: unknown index "node" (add it to Options.Indexes)`)
		key := fleet.Key{Cluster: "west", NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
		assert.Equal(t, "west/shop/web", key.String())
		web, found := pods.Get(key)
		require.True(t, found)
		assert.Equal(t, types.UID("west-web"), web.GetUID())
		_, found = pods.Get(fleet.Key{Cluster: "north", NamespacedName: key.NamespacedName})
		assert.False(t, found)

		west.events <- scripted.Event("MODIFIED", podJSON("west", "web", 101))
		east.events <- scripted.Event("DELETED", podJSON("east", "db", 102))
		synctest.Wait()
		assert.ElementsMatch(t, []string{"MODIFIED west/web", "DELETED east/db"}, changes.drain())
		assert.Equal(t, []string{"east/web", "west/web"}, names(pods.List("", nil)))
		assert.Equal(t, []string{"east", "west"}, f.Names())
		assert.Equal(t, 2, east.Discoveries()+west.Discoveries())
	})
}

func TestCache_DeadClustersDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := newPodCluster("live", "web")
		dead := newPodCluster("dead", "web") // without a server
		hanging := newPodCluster("hanging", "web")
		hanging.Handle("GET /apis", scripted.Hang)
		hanging.Handle("GET /api", scripted.Hang)
		denied := newPodCluster("denied", "web")
		denied.Handle("WATCH /api/v1/pods", scripted.Status(http.StatusForbidden, "Forbidden"))
		denied.Handle("GET /api/v1/pods", scripted.Status(http.StatusForbidden, "Forbidden"))
		f := newFleet(t, static(live, dead, hanging, denied), live, hanging, denied)
		start := time.Now()
		pods := newPods(t, f)
		changes := consume(t, pods)
		time.Sleep(100 * time.Millisecond) // of the spread
		synctest.Wait()
		assert.Equal(t, []string{"ADDED live/web", "SYNCED live"}, changes.drain())
		require.ErrorContains(t, pods.Health(), "not synced: ")

		var rejected *cache.RejectedError
		require.ErrorAs(t, pods.WaitForSync(t.Context()), &rejected)
		assert.ErrorContains(t, rejected, "3 of 4 clusters are failing")
		assert.ErrorContains(t, rejected, "hanging since 2000-01-01T00:00:10Z: no response for 10s")
		assert.Equal(t, 10*time.Second, time.Since(start).Round(time.Second))
		require.ErrorAs(t, pods.Health(), &rejected)
		states := map[string]fleet.Status{}
		for _, s := range pods.Clusters() {
			states[s.Cluster] = s
		}
		assert.Equal(t, fleet.Synced, states["live"].State)
		require.NoError(t, states["live"].Err)
		for _, name := range []string{"dead", "hanging", "denied"} {
			assert.Equal(t, fleet.Failing, states[name].State, name)
			require.Error(t, states[name].Err, name)
		}

		hanging.Handle("GET /apis")
		hanging.Handle("GET /api")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"ADDED hanging/web", "SYNCED hanging"}, changes.drain())
		assert.ErrorContains(t, pods.Health(), "2 of 4 clusters are failing")
		assert.Less(t, len(denied.Requests()), 60, "failed clusters are retried with a backoff")
	})
}

func TestCache_SetShard_SilentClusterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := newPodCluster("hanging", "web")
		hanging.Handle("GET /apis", scripted.Hang)
		hanging.Handle("GET /api", scripted.Hang)
		f := newFleet(t, static(hanging), hanging)
		halves := shard.Split(shard.UID, 2)
		pods := fleet.NewCache(f, "pods", &fleet.CacheOptions[unstructured.Object]{Options: cache.Options[unstructured.Object]{Shard: halves[0]}})
		run(t, pods.Run)
		time.Sleep(5 * time.Second)
		assert.Equal(t, fleet.Connecting, pods.Clusters()[0].State)
		require.NoError(t, pods.SetShard(halves[1]))
		time.Sleep(6 * time.Second)
		assert.Equal(t, fleet.Failing, pods.Clusters()[0].State)
	})
}

func TestCache_RecoversFromInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web")
		f := newFleet(t, static(east), east)
		pods := newPods(t, f)
		require.NoError(t, pods.WaitForSync(t.Context()))
		changes := consume(t, pods)
		watches := east.Handler("WATCH /api/v1/pods")
		east.Handle("WATCH /api/v1/pods", scripted.Break)
		east.restart()
		time.Sleep(time.Minute)
		status := pods.Clusters()[0]
		assert.Equal(t, fleet.Failing, status.State)
		assert.Greater(t, time.Since(status.Since), 50*time.Second)
		assert.ErrorContains(t, pods.Health(), "all clusters are failing: east since 2000-01-01T00:00:00Z: ")
		east.Handle("WATCH /api/v1/pods", watches)
		time.Sleep(time.Minute)
		assert.Equal(t, fleet.Synced, pods.Clusters()[0].State)
		require.NoError(t, pods.Health())
		assert.Equal(t, []string{"ADDED east/web", "SYNCED east"}, changes.drain())
	})
}

func TestCache_NewCredentialsReconnectOneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web")
		west := newPodCluster("west", "web")
		moved := newPodCluster("moved", "api")
		source, members := dynamicSource()
		f := newFleet(t, source, east, west, moved)
		members().Set("east", east.config("first"))
		members().Set("west", west.config("first"))
		pods := newPods(t, f)
		require.NoError(t, pods.WaitForSync(t.Context()))
		changes := consume(t, pods)
		synctest.Wait()
		changes.drain()
		oldClient, err := f.Client("east")
		require.NoError(t, err)

		members().Set("east", east.config("first")) // equal
		time.Sleep(time.Second)
		require.Len(t, east.Requests(), 1)
		members().Set("east", east.config("second"))
		time.Sleep(time.Second)
		synctest.Wait()
		requests := east.Requests()
		require.Len(t, requests, 2)
		assert.Contains(t, requests[0].Accept, "token=first")
		assert.Contains(t, requests[1].Accept, "token=second")
		assert.Contains(t, requests[1].URI, "resourceVersion=100", "resumed without a list")
		assert.Len(t, west.Requests(), 1)
		assert.Equal(t, []string{}, append([]string{}, changes.drain()...))
		newClient, err := f.Client("east")
		require.NoError(t, err)
		assert.NotSame(t, oldClient, newClient)

		members().Set("east", moved.config("second")) // a different server, which may be another cluster
		time.Sleep(time.Second)
		synctest.Wait()
		assert.NotContains(t, moved.Requests()[0].URI, "resourceVersion=100")
		assert.Equal(t, []string{"ADDED east/api", "DELETED east/web"}, slices.Sorted(slices.Values(changes.drain())))

		members().SetError("east", errors.New("no such file"))
		time.Sleep(time.Second)
		assert.ErrorContains(t, pods.Clusters()[0].Err, `connect to cluster "east": no such file`)
		assert.Equal(t, []string{"east/api", "west/web"}, names(pods.List("", nil)), "objects are kept")
	})
}

func TestCache_AddsAndRemovesClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web", "db")
		west := newPodCluster("west", "web")
		source, members := dynamicSource()
		f := newFleet(t, source, east, west)
		pods := newPods(t, f)
		require.NoError(t, pods.WaitForSync(t.Context()), "a fleet may be empty")
		changes := consume(t, pods)
		members().Set("east", east.config("first"))
		members().Set("west", west.config("first"))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Len(t, changes.drain(), 5)

		members().Remove("east")
		synctest.Wait()
		assert.Equal(t, []string{"REMOVED east/db", "REMOVED east/web"}, slices.Sorted(slices.Values(changes.drain())))
		assert.Equal(t, []string{"west/web"}, names(pods.List("", nil)))
		_, found := pods.Cluster("east")
		assert.False(t, found)
		_, err := f.Client("east")
		require.EqualError(t, err, `connect to cluster "east": not in the fleet`)

		members().Set("east", east.config("first"))
		members().Remove("east")
		members().Set("east", east.config("first")) // the consumer gets removals before additions
		time.Sleep(time.Second)
		synctest.Wait()
		last := changes.drain()
		assert.Equal(t, []string{"ADDED east/db", "ADDED east/web"}, slices.Sorted(slices.Values(last[len(last)-3:len(last)-1])))
		assert.Equal(t, "SYNCED east", last[len(last)-1])
		assert.Len(t, slices.Collect(maps.Keys(maps.Collect(pods.List("", nil)))), 2)
		require.NoError(t, pods.Health())
	})
}

func TestFleet_SetSelect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web")
		west := newPodCluster("west", "web")
		f := newFleet(t, static(east, west), east, west)
		f.SetSelect(func(cluster string) bool { return cluster == "east" })
		pods := newPods(t, f)
		require.NoError(t, pods.WaitForSync(t.Context()))
		assert.Equal(t, []string{"east/web"}, names(pods.List("", nil)))
		assert.Zero(t, west.Count(), "a cluster of another replica costs no request")
		changes := consume(t, pods)
		synctest.Wait()
		changes.drain()
		f.SetSelect(func(cluster string) bool { return cluster == "west" })
		require.NoError(t, pods.Health(), "the cache is as useful as before")
		require.NoError(t, pods.WaitForSync(t.Context()))
		assert.Equal(t, []string{"west/web"}, names(pods.List("", nil)))
		synctest.Wait()
		assert.Equal(t, []string{"ADDED west/web", "REMOVED east/web", "SYNCED west"}, slices.Sorted(slices.Values(changes.drain())))
		assert.Equal(t, []string{"west"}, f.Names())
	})
}

func TestCache_PanicEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web")
		f := newFleet(t, static(east), east)
		pods := fleet.NewCache(f, "pods", &fleet.CacheOptions[unstructured.Object]{Options: cache.Options[unstructured.Object]{
			Transform: func(*unstructured.Object) *unstructured.Object { panic("defect") },
		}})
		var panicked *cache.PanicError
		require.ErrorAs(t, pods.Run(t.Context()), &panicked)
		assert.Contains(t, panicked.Where, "Transform of the cache of pods of cluster east")
		require.ErrorContains(t, pods.Health(), "stopped: ")
		for range pods.Changes(t.Context()) {
			t.Error("no object has been stored")
		}
		require.ErrorContains(t, pods.Run(t.Context()), "runs already, or has run")
	})
}

func TestCache_SharesDictionaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clusters = 8
		pack := packed.New[unstructured.Lazy]()
		count := 0
		var all []*podCluster
		for i := range clusters {
			var pods []string
			for j := range 8 { // too few for a dictionary of their own
				pods = append(pods, fmt.Sprintf("web-%d", j))
			}
			all = append(all, newPodCluster(fmt.Sprintf("cluster-%d", i), pods...))
		}
		f := newFleet(t, static(all...), all...)
		pods := fleet.NewCache(f, "pods", &fleet.CacheOptions[unstructured.Lazy]{Options: cache.Options[unstructured.Lazy]{
			Transform: func(pod *unstructured.Lazy) *unstructured.Lazy {
				full, err := pod.Object()
				assert.NoError(t, err)
				full.SetAnnotations(map[string]string{"text": strings.Repeat(fmt.Sprint(pod.GetName(), " is a pod of the shop. "), 100)})
				data, err := unstructured.Encode(full)
				assert.NoError(t, err)
				changed, err := unstructured.DecodeLazy(data)
				assert.NoError(t, err)
				return changed
			},
			Pack: func(pod *unstructured.Lazy) cache.Packed[unstructured.Lazy] {
				p := pack(pod)
				if p != nil {
					count++
				}
				return p
			},
		}})
		f.SetSelect(func(string) bool { return true })
		run(t, pods.Run)
		require.NoError(t, pods.WaitForSync(t.Context()))
		assert.Positive(t, count, "objects of all clusters make a dictionary")
		for cluster, pod := range pods.List("", nil) {
			assert.Equal(t, types.UID(cluster+"-"+pod.GetName()), pod.GetUID())
		}
	})
}

func TestCache_GoroutinesOfIdleClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clusters = 200
		server := newPodCluster("server", "web")
		source, members := dynamicSource()
		f := newFleet(t, source, server)
		pods := newPods(t, f)
		consume(t, pods)
		members().Set("first", server.config("0"))
		require.NoError(t, pods.WaitForSync(t.Context()))
		before := goroutinesOf()
		for i := range clusters {
			members().Set(fmt.Sprint(i), server.config("0"))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.NoError(t, pods.Health())
		require.Len(t, pods.Clusters(), clusters+1)
		assert.LessOrEqual(t, goroutinesOf()-before, 2*clusters)
	})
}

// goroutinesOf returns the number of goroutines without those of connections and servers.
func goroutinesOf() (count int) {
	stacks := make([]byte, 64<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if _, creator, _ := strings.Cut(stack, "created by "); !strings.HasPrefix(creator, "net/http") {
			count++
		}
	}
	return count
}

func TestCache_ReconnectsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clusters = 300
		server := newPodCluster("server", "web")
		source, members := dynamicSource()
		f := newFleet(t, source, server)
		pods := newPods(t, f)
		for i := range clusters {
			members().Set(fmt.Sprint(i), server.config("0"))
		}
		time.Sleep(time.Minute)
		require.NoError(t, pods.Health())
		require.Len(t, server.Requests(), clusters)
		assertSpread(t, server.Requests(), 50*time.Millisecond, clusters/4)
		server.restart()
		time.Sleep(time.Minute)
		require.NoError(t, pods.Health())
		require.Len(t, server.Requests(), 2*clusters)
		assertSpread(t, server.Requests()[clusters:], 50*time.Millisecond, clusters/4)
	})
}

// assertSpread asserts that no period has more than limit requests.
func assertSpread(t *testing.T, requests []scripted.Request, period time.Duration, limit int) {
	t.Helper()
	slices.SortFunc(requests, func(a, b scripted.Request) int { return a.Time.Compare(b.Time) })
	for i := range requests {
		if j := i + limit; j < len(requests) {
			if took := requests[j].Time.Sub(requests[i].Time); !assert.Greater(t, took, period) {
				return
			}
		}
	}
}

func TestChanges_EndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		east := newPodCluster("east", "web", "db")
		f := newFleet(t, static(east), east)
		pods := newPods(t, f)
		require.NoError(t, pods.WaitForSync(t.Context()))
		for range pods.Changes(t.Context()) {
			break // leaves the loop
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		count := 0
		for range pods.Changes(ctx) {
			count++
		}
		assert.Equal(t, 3, count)
	})
}

func TestCache_SlowListsDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newPodCluster("slow", "web")
		slow.Handle("WATCH /api/v1/pods", scripted.Hang)
		slow.Handle("GET /api/v1/pods", scripted.Hang)
		live := newPodCluster("live", "web")
		source, members := dynamicSource()
		f := newFleet(t, source, slow, live)
		for i := range 20 {
			members().Set(fmt.Sprint("slow-", i), slow.config("0"))
		}
		pods := newPods(t, f)
		time.Sleep(time.Second)
		require.Len(t, slow.Requests(), 16, "concurrent initial lists")
		members().Set("live", live.config("0"))
		time.Sleep(5 * time.Second)
		assert.Equal(t, []string{"live/web"}, names(pods.List("", nil)))
	})
}
