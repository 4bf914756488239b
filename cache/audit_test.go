package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
)

// audits collects the results of audits.
type audits struct {
	mu      sync.Mutex
	results []cache.AuditResult
}

func (a *audits) options(interval time.Duration) *cache.Audit {
	return &cache.Audit{Interval: interval, OnResult: func(result cache.AuditResult) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.results = append(a.results, result)
	}}
}

// all returns the results until now.
func (a *audits) all() []cache.AuditResult {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]cache.AuditResult(nil), a.results...)
}

// differences returns the texts of all differences.
func (a *audits) differences() (texts []string) {
	for _, result := range a.all() {
		for _, d := range result.Differences {
			texts = append(texts, d.String())
		}
	}
	return texts
}

func replaced(name, app, uid string) *object {
	obj := pod("shop", name, app, 0)
	obj.SetUID(types.UID(uid))
	return obj
}

// shardOf returns the eighth of the hashes with a UID.
func shardOf(uid types.UID) (selected shard.Selector) {
	for _, eighth := range shard.Split(shard.UID, 8) {
		if eighth.Matches("", uid) {
			selected = eighth
		}
	}
	return selected
}

func TestAudit_RepairsLostEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		lose func(*revisions)
		want string
	}{
		"addition": {
			func(s *revisions) { s.lose("shop/new", pod("shop", "new", "web", 0)) },
			"shop/new is missing in the cache, and resourceVersion 5 of UID uid of new on the server",
		},
		"update": {
			func(s *revisions) { s.lose("shop/a", pod("shop", "a", "web", 0)) },
			"shop/a is resourceVersion 2 of UID uid of a in the cache, and resourceVersion 5 of UID uid of a on the server",
		},
		"deletion": {
			func(s *revisions) { s.lose("shop/a", nil) },
			"shop/a is resourceVersion 2 of UID uid of a in the cache, and missing on the server",
		},
		"replacement": {
			func(s *revisions) { s.lose("shop/a", nil); s.lose("shop/a", replaced("a", "web", "other")) },
			"shop/a is resourceVersion 2 of UID uid of a in the cache, and resourceVersion 6 of UID other on the server",
		},
	} {
		for scope, opts := range map[string]cache.Options[object]{
			"a stream":   {},
			"namespaces": {Namespaces: []string{"home", "shop"}},
			"a shard":    {Shard: shardOf("uid of a")},
			"a selector": {LabelSelector: "app=web"},
		} {
			if name != "deletion" && scope != "a stream" {
				continue
			}
			t.Run(name+" of "+scope, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newRevisions()
					s.write("shop/a", pod("shop", "a", "web", 0))
					s.write("home/b", pod("home", "b", "web", 0))
					s.write("shop/other", pod("shop", "other", "db", 0))
					var found audits
					opts.Audit = found.options(0)
					var c *cache.Cache[object]
					record := opts.Audit.OnResult
					opts.Audit.OnResult = func(result cache.AuditResult) {
						record(result)
						if len(result.Differences) > 0 { // afterwards the relist is an interruption
							assert.EqualError(t, c.Health(), "cache /api/v1/pods: audit: "+tc.want)
						}
					}
					c = cache.New(s.pods(t), &opts)
					run(t, c)
					require.NoError(t, c.WaitForSync(t.Context()))
					time.Sleep(100 * time.Minute) // an audit without differences
					synctest.Wait()
					require.NotEmpty(t, found.all())
					require.Empty(t, found.differences())
					tc.lose(s)
					require.Eventually(t, func() bool { return len(found.differences()) > 0 }, 3*time.Hour, time.Second)
					assert.Equal(t, []string{tc.want}, found.differences())
					time.Sleep(10 * time.Second)
					selects := func(obj *object) bool {
						return opts.Shard.Matches(obj.GetNamespace(), obj.GetUID()) && (opts.LabelSelector == "" || obj.GetLabels()["app"] == "web")
					}
					assert.Equal(t, s.stored(selects), versionsByKey(c.List("", nil)))
					time.Sleep(2 * time.Hour)
					assert.Equal(t, []string{tc.want}, found.differences(), "once")
					assert.NoError(t, c.Health())
					for _, result := range found.all() {
						assert.NoError(t, result.Err)
					}
					if opts.Namespaces == nil { // otherwise a result is of one namespace
						assert.Len(t, s.stored(selects), found.all()[len(found.all())-1].Objects)
					}
				})
			})
		}
	}
}

// A change of the shard between a difference and its repair, and changes more often than audits.
func TestAudit_ContinuesWithChangedShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRevisions()
		s.write("shop/a", pod("shop", "a", "web", 0))
		small := shardOf("uid of a")
		large := small.Union(shard.Split(shard.UID, 8)[0])
		var found audits
		options := found.options(0)
		report := options.OnResult
		var c *cache.Cache[object]
		options.OnResult = func(result cache.AuditResult) {
			report(result)
			if len(result.Differences) > 0 {
				assert.NoError(t, c.SetShard(small))
				time.Sleep(time.Second) // Run applies the shard before it is asked for a relist
				assert.ErrorContains(t, c.Health(), "missing on the server")
			}
		}
		c = cache.New(s.pods(t), &cache.Options[object]{Shard: large, Audit: options})
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()))
		s.lose("shop/a", nil)
		require.Eventually(t, func() bool { return len(found.differences()) > 0 }, 3*time.Hour, time.Minute)
		time.Sleep(2 * time.Minute)
		assert.Empty(t, c.List("", nil))
		time.Sleep(2 * time.Minute)
		assert.NoError(t, c.Health())
		assert.Len(t, found.differences(), 1)

		before := len(found.all())
		for i := range 12 {
			require.NoError(t, c.SetShard([]shard.Selector{large, small}[i%2]))
			time.Sleep(30 * time.Minute)
		}
		assert.GreaterOrEqual(t, len(found.all())-before, 3)
	})
}

func TestAudit_RepairsPatchedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRevisions()
		s.write("shop/a", pod("shop", "a", "web", 0))
		s.write("shop/b", pod("shop", "b", "web", 0))
		var found audits
		c := cache.New(s.pods(t), &cache.Options[object]{Audit: found.options(time.Hour), DisableInterning: true})
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()))
		c.PatchStore(types.NamespacedName{Namespace: "shop", Name: "a"}, pod("shop", "a", "web", 1))
		c.PatchStore(types.NamespacedName{Namespace: "shop", Name: "b"}, nil)
		c.PatchStore(types.NamespacedName{Namespace: "shop", Name: "ghost"}, pod("shop", "ghost", "web", 2))
		time.Sleep(2 * time.Hour)
		assert.Equal(t, []string{
			"shop/a is resourceVersion 1 of UID uid of a in the cache, and resourceVersion 2 of UID uid of a on the server",
			"shop/b is missing in the cache, and resourceVersion 3 of UID uid of b on the server",
			"shop/ghost is resourceVersion 2 of UID uid of ghost in the cache, and missing on the server",
		}, found.differences())
		assert.Equal(t, s.stored(nil), versionsByKey(c.List("", nil)))
	})
}

// TestAudit_FindsWrongWatchCache loses an event in the server: its watch cache keeps the old state.
func TestAudit_FindsWrongWatchCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRevisions()
		var found audits
		c := cache.New(s.pods(t), &cache.Options[object]{Audit: found.options(time.Hour)})
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()))
		s.watchCache = s.history[1]
		s.lose("shop/first", nil)
		time.Sleep(100 * time.Minute)
		assert.Equal(t, []string{
			"shop/first is resourceVersion 1 of UID uid of first in the cache, and missing on the server (whose watch cache is wrong, too)",
		}, found.differences())
		assert.Empty(t, c.List("", nil), "repaired by a list from etcd")
	})
}

func TestAudit_UnconfirmedDifference(t *testing.T) {
	for name, tc := range map[string]struct {
		begin, heal func(*revisions, *cache.Cache[object])
	}{
		"healed in time": {
			func(_ *revisions, c *cache.Cache[object]) {
				c.PatchStore(types.NamespacedName{Namespace: "shop", Name: "first"}, nil)
			},
			func(s *revisions, c *cache.Cache[object]) {
				c.PatchStore(types.NamespacedName{Namespace: "shop", Name: "first"}, s.history[1]["shop/first"].DeepCopy())
			},
		},
		"wrong snapshot of the server": {
			func(s *revisions, _ *cache.Cache[object]) { s.snapshot = map[string]*object{} },
			func(*revisions, *cache.Cache[object]) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRevisions()
				var found audits
				c := cache.New(s.pods(t), &cache.Options[object]{Audit: found.options(time.Hour)})
				run(t, c)
				require.NoError(t, c.WaitForSync(t.Context()))
				tc.begin(s, c)
				require.Eventually(t, func() bool { return s.lists() > 0 }, 3*time.Hour, time.Second)
				time.Sleep(2 * time.Second)
				tc.heal(s, c)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.Len(t, found.all(), 1)
				assert.Equal(t, cache.AuditResult{ResourceVersion: "1", Objects: len(s.snapshotOr(1))}, found.all()[0])
			})
		})
	}
}

func TestAudit_NoDifferenceInChurn(t *testing.T) {
	for name, opts := range map[string]cache.Options[object]{
		"a stream":   {},
		"namespaces": {Namespaces: []string{"home", "shop"}},
		"transform": {Transform: func(obj *object) *object {
			if obj.GetLabels()["app"] == "db" {
				return nil
			}
			return obj
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRevisions()
				s.pageDelay = 3 * time.Second
				var found audits
				opts.Audit = found.options(3 * time.Minute)
				c := cache.New(s.pods(t), &opts)
				run(t, c)
				random := rand.New(rand.NewPCG(1, 2))
				for range 800 {
					namespace := []string{"home", "shop"}[random.IntN(2)]
					name := fmt.Sprint("pod-", random.IntN(8))
					obj := pod(namespace, name, []string{"web", "db"}[random.IntN(2)], 0)
					switch random.IntN(4) {
					case 0:
						s.write(namespace+"/"+name, nil)
					case 1:
						obj.SetUID(types.UID(fmt.Sprint(random.Int())))
						fallthrough
					default:
						s.write(namespace+"/"+name, obj)
					}
					time.Sleep(time.Duration(random.IntN(9000)) * time.Millisecond)
				}
				assert.Greater(t, len(found.all()), 12)
				for _, result := range found.all() {
					assert.NoError(t, result.Err)
				}
				assert.Empty(t, found.differences())
			})
		})
	}
}

func TestAudit_TransformLeavesObjectsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRevisions()
		s.write("shop/a", pod("shop", "a", "db", 0))
		s.write("shop/b", pod("shop", "b", "db", 0))
		var found audits
		c := cache.New(s.pods(t), &cache.Options[object]{Audit: found.options(time.Hour), Transform: func(obj *object) *object {
			if obj.GetLabels()["app"] == "db" {
				return nil
			}
			return obj
		}})
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()))
		s.write("shop/b", nil)
		synctest.Wait()
		assert.Equal(t, 3, c.Entries(), "the deletion of an unknown object is not emitted")
		time.Sleep(100 * time.Minute)
		assert.Equal(t, 2, c.Entries())
		assert.Empty(t, found.differences())
		s.lose("shop/a", pod("shop", "a", "web", 0))
		time.Sleep(2 * time.Hour)
		assert.Equal(t, []string{
			"shop/a is resourceVersion 2 of UID uid of a in the cache, and resourceVersion 5 of UID uid of a on the server",
		}, found.differences())
		assert.Equal(t, []string{"shop/a", "shop/first"}, names(c.List("", nil)))
	})
}

func TestAudit_FailedListIsHarmless(t *testing.T) {
	for name, tc := range map[string]struct {
		fail http.HandlerFunc
		page int
		want string
	}{
		"403":                {scripted.Status(403, "Forbidden"), 0, "as scripted"},
		"429":                {scripted.Status(429, "TooManyRequests"), 0, "as scripted"},
		"500":                {scripted.Status(500, "InternalError"), 0, "as scripted"},
		"410":                {scripted.Status(410, "Expired"), 0, "as scripted"},
		"410 of a page":      {scripted.Status(410, "Expired"), 1, "as scripted"},
		"no JSON":            {scripted.JSON("{"), 0, "EOF"},
		"silence":            {scripted.Hang, 1, "it takes longer than 10m0s"},
		"not exact":          {scripted.JSON(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`), 0, "instead of 4 (the server does not support resourceVersionMatch=Exact)"},
		"nothing, no RV yet": {scripted.JSON(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}`), 0, "the list is of resourceVersion  instead of 4"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRevisions()
				s.write("shop/a", pod("shop", "a", "web", 0))
				s.write("shop/b", pod("shop", "b", "web", 0))
				s.lose("shop/b", nil) // before the cache begins
				s.fail = tc.fail
				s.failPage = tc.page
				var found audits
				c := cache.New(s.pods(t), &cache.Options[object]{Audit: found.options(time.Hour)})
				run(t, c)
				require.NoError(t, c.WaitForSync(t.Context()))
				if tc.page > 0 {
					s.write("shop/c", pod("shop", "c", "web", 0))
				}
				time.Sleep(105 * time.Minute)
				require.Len(t, found.all(), 1)
				assert.ErrorContains(t, found.all()[0].Err, "audit cache /api/v1/pods: ")
				assert.ErrorContains(t, found.all()[0].Err, tc.want)
				assert.NoError(t, c.Health())
				assert.Equal(t, s.stored(nil), versionsByKey(c.List("", nil)))
				s.lose("shop/a", nil)
				time.Sleep(105 * time.Minute)
				assert.Len(t, found.differences(), 1, "the next audit works")
			})
		})
	}
}

func TestAudit_SourceWithoutLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found audits
		c, source := running(t, &cache.Options[object]{Audit: found.options(time.Hour)})
		source.progress("1")
		time.Sleep(2 * time.Hour)
		assert.ErrorContains(t, found.all()[0].Err, "audit cache /api/v1/pods: its source, *cache_test.script, is not a handle of package dynamic")
		assert.False(t, c.HasSynced())
	})
}

func TestAudit_SilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRevisions()
		s.Handle("WATCH /api/v1/pods", scripted.Watch(scripted.InitialEventsEnd("v1", "Pod", "1")), scripted.Status(500, "InternalError"))
		var found audits
		c := cache.New(s.pods(t), &cache.Options[object]{Audit: found.options(time.Hour)})
		run(t, c)
		time.Sleep(2 * time.Hour)
		require.NotEmpty(t, found.all())
		assert.ErrorContains(t, found.all()[0].Err, "no progress of the stream")
	})
}

func TestAudit_PanicOfCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRevisions()
		c := cache.New(s.pods(t), &cache.Options[object]{Audit: &cache.Audit{OnResult: func(cache.AuditResult) { panic("oops") }}})
		var panicErr *cache.PanicError
		require.ErrorAs(t, c.Run(t.Context()), &panicErr)
		assert.ErrorContains(t, panicErr, "an audit of the cache of /api/v1/pods")
	})
}

func TestAudit_EndsWithContext(t *testing.T) {
	for name, isReached := range map[string]func(*revisions) bool{
		"before":         func(*revisions) bool { return true },
		"during a list":  func(s *revisions) bool { return s.lists() > 0 },
		"while it lasts": func(s *revisions) bool { return s.lists() > 1 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newRevisions()
				s.write("shop/a", pod("shop", "a", "web", 0))
				s.write("shop/b", pod("shop", "b", "web", 0))
				s.pageDelay = time.Minute
				ctx, cancel := context.WithCancel(t.Context())
				var found audits
				c := cache.New(s.pods(t), &cache.Options[object]{Audit: found.options(time.Hour)})
				go func() {
					for !isReached(s) {
						time.Sleep(time.Second)
					}
					cancel()
				}()
				require.ErrorIs(t, c.Run(ctx), context.Canceled)
				assert.Empty(t, found.all())
			})
		})
	}
}
