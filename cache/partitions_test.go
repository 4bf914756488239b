package cache_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/transport"
)

const watchOfPods = "WATCH /api/v1/namespaces/shop/pods"

// shardServer serves eight pods, one for each eighth of the hashes, at resourceVersion 10 and more, with each watch.
func shardServer(t *testing.T) (pods *dynamic.Resource, server *scripted.Server, eighths []shard.Selector) {
	t.Helper()
	eighths = shard.Split(shard.UID, 8)
	uids := make([]string, len(eighths))
	for i := 0; slices.Contains(uids, ""); i++ {
		uid := fmt.Sprintf("%d-uid", i)
		for partition, eighth := range eighths {
			if eighth.Matches("", types.UID(uid)) {
				uids[partition] = uid
			}
		}
	}
	server = scripted.New("/v1 pods pod Pod po")
	var version atomic.Int64
	version.Store(10)
	server.Handle(watchOfPods, func(w http.ResponseWriter, r *http.Request) {
		current := version.Add(1)
		if r.URL.Query().Get("sendInitialEvents") != "" {
			selector, err := shard.Parse(r.URL.Query().Get("shardSelector"))
			assert.NoError(t, err)
			for i, uid := range uids {
				if selector.Matches("shop", types.UID(uid)) {
					_, _ = fmt.Fprint(w, scripted.Event("ADDED", fmt.Sprintf(
						`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"pod-%d","uid":%q,"resourceVersion":"%d"}}`, i, uid, i+1)))
				}
			}
			_, _ = io.WriteString(w, scripted.InitialEventsEnd("v1", "Pod", fmt.Sprint(current)))
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	client := dynamic.New(scripted.Connect(t, server, &transport.Options{Namespace: "shop"}), nil)
	t.Cleanup(client.Close)
	pods, err := client.Resource(t.Context(), "pods")
	require.NoError(t, err)
	return pods, server, eighths
}

// watched returns the shards of the watches since the last call, with the resourceVersion that they continue at.
func watched(t *testing.T, server *scripted.Server, seen *int) (watches []string) {
	t.Helper()
	synctest.Wait()
	for _, request := range server.Requests()[*seen:] {
		*seen++
		parsed, err := url.Parse(request.URI)
		require.NoError(t, err)
		query := parsed.Query()
		if query.Has("limit") { // the probe
			continue
		}
		watches = append(watches, strings.TrimSpace(query.Get("shardSelector")+" "+query.Get("resourceVersion")))
	}
	return watches
}

func TestCache_IsSharded(t *testing.T) {
	half := shard.Split(shard.UID, 2)[0]
	for name, tc := range map[string]struct {
		shard             shard.Selector
		probe             http.HandlerFunc
		events            []string // of the watch; nil for the pods of the shard
		byServer, isKnown bool
		probes            int
	}{
		"no shard":  {probe: scripted.JSON(`{"metadata":{"shardInfo":{}}}`), events: []string{scripted.InitialEventsEnd("v1", "Pod", "10")}, isKnown: true},
		"by server": {shard: half, probe: scripted.JSON(`{"metadata":{"shardInfo":{}}}`), byServer: true, isKnown: true, probes: 1},
		"by client": {shard: half, probe: scripted.JSON(`{"metadata":{}}`), isKnown: true, probes: 1},
		"forbidden": {shard: half, probe: scripted.Status(http.StatusForbidden, "Forbidden"), probes: 1},
		"no list":   {shard: half, probe: scripted.JSON("["), probes: 2},
		"received": {
			shard: shard.Split(shard.UID, 8)[0], probe: scripted.JSON(`{"metadata":{"shardInfo":{}}}`), isKnown: true, probes: 1,
			events: []string{
				scripted.Event("ADDED", `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web","uid":"1","resourceVersion":"5"}}`),
				scripted.InitialEventsEnd("v1", "Pod", "10"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server, _ := shardServer(t)
				server.Handle("GET /api/v1/namespaces/shop/pods", tc.probe)
				if tc.events != nil {
					server.Handle("WATCH /api/v1/namespaces/shop/pods", scripted.Watch(tc.events...))
				}
				for range 2 { // with one client
					c := cache.New(pods, &cache.Options[object]{Shard: tc.shard})
					run(t, c)
					require.NoError(t, c.WaitForSync(t.Context()))
					time.Sleep(time.Minute)
					byServer, isKnown := c.IsSharded()
					assert.Equal(t, []bool{tc.byServer, tc.isKnown}, []bool{byServer, isKnown})
				}
				probes := 0
				for _, request := range server.Requests() {
					if strings.Contains(request.URI, "limit=1&") {
						probes++
					}
				}
				assert.Equal(t, tc.probes, probes)
			})
		})
	}
}

func TestSetShard_ListsWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, server, eighths := shardServer(t)
		half := shard.Split(shard.UID, 2)[0]
		c := cache.New(pods, &cache.Options[object]{Shard: shard.New(shard.UID)})
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()), "of nothing")
		assert.NoError(t, c.Health())
		seen := 0
		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		expect := func(want ...string) {
			t.Helper()
			got := map[string]bool{}
			for range want {
				change, _ := next()
				got[text(change)] = true
			}
			for _, change := range want {
				assert.Contains(t, got, change)
			}
		}
		expect("SYNCED")

		require.NoError(t, c.SetShard(eighths[1]))
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Equal(t, []string{eighths[1].String()}, watched(t, server, &seen))
		expect("ADDED pod-1 2")

		require.NoError(t, c.SetShard(half))
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Equal(t, []string{half.Subtract(eighths[1]).String(), half.String() + " 11"}, watched(t, server, &seen), "then one watch of both")
		assert.Equal(t, []string{"shop/pod-0", "shop/pod-1", "shop/pod-2", "shop/pod-3"}, names(c.List("", nil)))
		expect("ADDED pod-0 1", "ADDED pod-2 3", "ADDED pod-3 4")

		require.NoError(t, c.SetShard(eighths[0].Union(eighths[7])))
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.ElementsMatch(t, []string{eighths[0].String() + " 11", eighths[7].String(), eighths[0].Union(eighths[7]).String() + " 11"}, watched(t, server, &seen))
		assert.Equal(t, []string{"shop/pod-0", "shop/pod-7"}, names(c.List("", nil)))
		expect("REMOVED pod-1 2 was 2", "REMOVED pod-2 3 was 3", "REMOVED pod-3 4 was 4", "ADDED pod-7 8")

		require.NoError(t, c.SetShard(shard.New(shard.UID)))
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Empty(t, watched(t, server, &seen))
		assert.Empty(t, c.List("", nil))
		expect("REMOVED pod-0 1 was 1", "REMOVED pod-7 8 was 8")
		require.NoError(t, c.WaitForResourceVersion(t.Context(), "1000"), "of nothing")
	})
}

// A server that starts, behind a load balancer, rejects the watch of gained objects while the previous watch goes on.
func TestSetShard_RejectedGainIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, server, eighths := shardServer(t)
		c := cache.New(pods, &cache.Options[object]{Shard: eighths[1]})
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()))
		serve := server.Handler(watchOfPods)
		server.Handle(watchOfPods, scripted.Status(http.StatusForbidden, "Forbidden"))
		require.NoError(t, c.SetShard(eighths[0].Union(eighths[1])))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.ErrorIs(t, c.WaitForSync(ctx), context.DeadlineExceeded)
		assert.ErrorContains(t, c.Health(), "as scripted")
		server.Handle(watchOfPods, serve)
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Equal(t, []string{"shop/pod-0", "shop/pod-1"}, names(c.List("", nil)))
	})
}

// Rejections end Run before the first list only, also if no partition of it is left.
func TestSetShard_RejectedLater(t *testing.T) {
	for name, first := range map[string]int{"narrowed": 2, "from nothing": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, server, eighths := shardServer(t)
				c := cache.New(pods, &cache.Options[object]{Shard: eighths[0].Union(eighths[1])})
				run(t, c)
				require.NoError(t, c.WaitForSync(t.Context()))
				if first == 0 {
					require.NoError(t, c.SetShard(shard.New(shard.UID)))
					require.NoError(t, c.WaitForSync(t.Context()))
				}
				serve := server.Handler(watchOfPods)
				server.Handle(watchOfPods, scripted.Status(http.StatusForbidden, "Forbidden"))
				require.NoError(t, c.SetShard(eighths[0]))
				time.Sleep(time.Minute)
				assert.ErrorContains(t, c.Health(), "as scripted")
				server.Handle(watchOfPods, serve)
				time.Sleep(2 * time.Minute)
				require.NoError(t, c.WaitForSync(t.Context()))
				assert.NoError(t, c.Health())
				assert.Equal(t, []string{"shop/pod-0"}, names(c.List("", nil)))
			})
		})
	}
}

func TestSetShard_Invalid(t *testing.T) {
	pods, _, eighths := shardServer(t)
	assert.ErrorContains(t, cache.New(pods, nil).SetShard(eighths[0]), `set the shard of cache /api/v1/namespaces/shop/pods: by "metadata.uid", but Options.Shard is by ""`)
	byNamespace := cache.New(pods, &cache.Options[object]{Shard: shard.New(shard.Namespace)})
	assert.ErrorContains(t, byNamespace.SetShard(eighths[0]), `but Options.Shard is by "metadata.namespace"`)
	assert.ErrorContains(t, byNamespace.SetNamespaces("shop"), "set Options.Namespaces")
	named := cache.New(pods, &cache.Options[object]{Namespaces: []string{}})
	assert.ErrorContains(t, named.SetNamespaces("shop", ""), "contains an empty name")
}

func TestSetNamespaces_TenantsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := scripts{"shop": newScript(), "home": newScript()}
		c := cache.New(source, &cache.Options[object]{Namespaces: []string{}})
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()))
		require.NoError(t, c.SetNamespaces("shop", "home"))
		for name, script := range source {
			script.emit("ADDED", pod(name, "web", "web", 1))
			script.progress("5")
			script.emit(dynamic.Synced, nil)
		}
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Equal(t, []string{"home/web", "shop/web"}, names(c.List("", nil)))
		require.NoError(t, c.SetNamespaces("home"))
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Equal(t, []string{"home/web"}, names(c.List("", nil)))
		source["home"].emit("MODIFIED", pod("home", "web", "web", 6))
		source["home"].progress("6")
		synctest.Wait()
		require.NoError(t, c.WaitForResourceVersion(t.Context(), "6"), "shop does not count any more")
		assert.NoError(t, c.Health())
	})
}
