package cache_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// scripts is a source of several namespaces.
type scripts map[string]*script

func (scripts) Path(string) (string, error) { return "/api/v1/pods", nil }

func (s scripts) Follow(context.Context, *dynamic.FollowOptions) iter.Seq2[change, error] {
	panic("all namespaces")
}

func (s scripts) Namespace(name string) cache.Source[object] { return s[name] }

// runningIn returns a cache of the namespaces shop and home, which runs until the test ends.
func runningIn(t *testing.T, opts cache.Options[object]) (c *cache.Cache[object], shop, home *script) {
	t.Helper()
	source := scripts{"shop": newScript(), "home": newScript()}
	opts.Namespaces = []string{"shop", "home", "shop"}
	c = cache.New(source, &opts)
	run(t, c)
	return c, source["shop"], source["home"]
}

func TestNamespaces_MergedIntoOneCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, shop, home := runningIn(t, cache.Options[object]{Indexes: map[string]func(*object) []string{"app": cache.IndexByLabel[object]("app")}})
		shop.emit(dynamic.Started, nil)
		shop.emit(watch.Added, pod("shop", "web", "web", 1))
		shop.progress("10")
		shop.emit(dynamic.Synced, nil)
		synctest.Wait()
		assert.False(t, c.HasSynced(), "home is missing")
		home.emit(watch.Added, pod("home", "web", "web", 2))
		home.progress("12")
		home.emit(dynamic.Synced, nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Equal(t, []string{"home/web", "shop/web"}, names(c.List("", nil)))
		assert.Equal(t, []string{"shop/web"}, names(c.List("shop", nil)))
		byApp, err := c.ByIndex("app", "web")
		require.NoError(t, err)
		assert.Equal(t, []string{"home/web", "shop/web"}, names(byApp))

		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		for range 2 {
			change, _ := next()
			assert.Equal(t, watch.Added, change.Type)
		}
		expect := func(want string) {
			t.Helper()
			change, _ := next()
			assert.Equal(t, want, text(change))
		}
		expect("SYNCED")
		home.emit(watch.Modified, pod("home", "web", "web", 13))
		expect("MODIFIED web 13 was 2")
		shop.emit(watch.Deleted, pod("shop", "web", "web", 14))
		expect("DELETED web 14 was 1")

		require.NoError(t, c.WaitForResourceVersion(t.Context(), "10"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.WaitForResourceVersion(ctx, "11"), context.DeadlineExceeded, "shop is at 10")
	})
}

func TestNamespaces_RejectedOneDoesNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var interruptions []dynamic.Interruption
		c, shop, home := runningIn(t, cache.Options[object]{OnInterruption: func(i dynamic.Interruption) { interruptions = append(interruptions, i) }})
		forbidden := errors.New("pods is forbidden")
		shop.emit(watch.Added, pod("shop", "web", "web", 1))
		home.emit(watch.Added, pod("home", "gone", "web", 2))
		home.emit(watch.Added, pod("home", "kept", "web", 3))
		home.fail(forbidden)
		shop.progress("5")
		shop.emit(dynamic.Synced, nil)
		err := c.WaitForSync(t.Context())
		require.ErrorIs(t, err, forbidden)
		assert.EqualError(t, err, `cache /api/v1/pods: rejected: namespace "home": pods is forbidden`)
		assert.EqualError(t, c.Health(), `cache /api/v1/pods: rejected: namespace "home": pods is forbidden`)
		synctest.Wait()
		require.Len(t, interruptions, 1)
		assert.ErrorIs(t, interruptions[0].Err, forbidden)
		assert.GreaterOrEqual(t, interruptions[0].Delay, time.Second)
		assert.Equal(t, 1, interruptions[0].Count)
		assert.True(t, interruptions[0].Relist)

		assert.True(t, c.HasSynced(), "but for home")
		require.NoError(t, c.WaitForResourceVersion(t.Context(), "5"), "home does not count")
		shop.emit(watch.Modified, pod("shop", "web", "web", 6))
		synctest.Wait()
		web, _ := c.Get("shop", "web")
		assert.Equal(t, "6", web.GetResourceVersion(), "shop goes on")

		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		for range 3 {
			next()
		}
		change, _ := next()
		assert.Equal(t, dynamic.Synced, change.Type)
		start := time.Now()
		home.emit(dynamic.Started, nil) // once it is followed again
		assert.Less(t, time.Since(start), 4*time.Second)
		synctest.Wait()
		assert.EqualError(t, c.Health(), `cache /api/v1/pods: not synced: last interruption: namespace "home": pods is forbidden`)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, c.WaitForSync(ended), context.Canceled)
		require.ErrorIs(t, c.WaitForResourceVersion(ended, "5"), context.Canceled, "home is accepted")
		home.emit(watch.Added, pod("home", "kept", "web", 3))
		home.progress("7")
		synctest.Wait()
		assert.Equal(t, []string{"home/kept", "shop/web"}, names(c.List("", nil)), "whoever waits for 7 finds it")
		home.emit(dynamic.Synced, nil)
		synctest.Wait()
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.Equal(t, []string{"home/kept", "shop/web"}, names(c.List("", nil)))
		assert.NoError(t, c.Health())
		require.NoError(t, c.WaitForResourceVersion(t.Context(), "5"))
		change, _ = next()
		assert.Equal(t, "MODIFIED kept 3 was 3", text(change))
		change, _ = next()
		assert.Equal(t, "DELETED gone 2 was 2 final state unknown", text(change))
	})
}

// TestNamespaces_HealthOfRejectedOne gets a RejectedError only while the other namespace is healthy.
func TestNamespaces_HealthOfRejectedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, shop, home := runningIn(t, cache.Options[object]{})
		expect := func(isRejected bool, want string) {
			t.Helper()
			synctest.Wait()
			err := c.Health()
			require.EqualError(t, err, "cache /api/v1/pods: "+want)
			var rejected *cache.RejectedError
			assert.Equal(t, isRejected, errors.As(err, &rejected))
		}
		const rejected = `rejected: namespace "home": pods is forbidden`
		home.fail(errors.New("pods is forbidden"))
		expect(false, `not synced: last interruption: namespace "home": pods is forbidden`)
		shop.progress("5")
		shop.emit(dynamic.Synced, nil)
		expect(true, rejected)
		shop.interrupt(errors.New("connection refused"))
		expect(false, `interrupted: namespace "shop": connection refused`)
		shop.progress("5")
		expect(true, rejected)
		shop.emit(dynamic.NotServed, nil)
		expect(false, "the server does not serve the resource")
		shop.emit(dynamic.Synced, nil)
		expect(true, rejected)
	})
}

func TestNamespaces_RejectedAfterSyncKeepsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, shop, home := runningIn(t, cache.Options[object]{})
		for _, one := range []*script{shop, home} {
			one.progress("5")
			one.emit(dynamic.Synced, nil)
		}
		home.emit(watch.Added, pod("home", "web", "web", 6))
		synctest.Wait()
		home.fail(errors.New("it is no pod"))
		synctest.Wait()
		require.NoError(t, c.WaitForSync(t.Context()), "it had all")
		assert.Equal(t, []string{"home/web"}, names(c.List("", nil)))
		assert.EqualError(t, c.Health(), `cache /api/v1/pods: rejected: namespace "home": it is no pod`)
		shop.emit(dynamic.NotServed, nil)
		synctest.Wait()
		shop.emit(dynamic.Synced, nil)
		synctest.Wait()
		home.progress("7")
		home.emit(dynamic.Synced, nil)
		synctest.Wait()
		assert.NoError(t, c.Health())
	})
}

func TestCache_StringNamesNoOtherNamespace(t *testing.T) {
	conn, err := transport.New("http://memory", nil, &transport.Options{Namespace: "home"})
	require.NoError(t, err)
	leases := dynamic.New(conn, nil).ForAPIResource(&discovery.Resource{
		GVR: schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, Namespaced: true,
	})
	opts := &cache.Options[object]{Namespaces: []string{"shop"}}
	assert.Equal(t, "/apis/coordination.k8s.io/v1/leases", cache.New(leases, opts).String())
	assert.Equal(t, "/apis/coordination.k8s.io/v1/namespaces/home/leases", cache.New(leases, nil).String())
	typed := dynamic.As[metav1.PartialObjectMetadata](leases)
	assert.Equal(t, "/apis/coordination.k8s.io/v1/leases", cache.New(typed, &cache.Options[metav1.PartialObjectMetadata]{Namespaces: []string{"shop"}}).String())
}

func TestNamespaces_AllRejectedEndRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, shop, home := runningIn(t, cache.Options[object]{})
		forbidden := errors.New("pods is forbidden")
		missing := errors.New("not found")
		shop.fail(forbidden)
		home.fail(missing)
		err := c.WaitForStop(t.Context())
		require.ErrorIs(t, err, forbidden)
		require.ErrorIs(t, err, missing)
		assert.EqualError(t, err, `run cache /api/v1/pods: every namespace is rejected: namespace "home": not found; namespace "shop": pods is forbidden`)
		assert.ErrorIs(t, c.Health(), missing)
	})
}

func TestNamespaces_NotServedUntilAllAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, shop, home := runningIn(t, cache.Options[object]{})
		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		shop.emit(dynamic.Synced, nil)
		shop.emit(dynamic.NotServed, nil) // before home has synced
		synctest.Wait()
		home.emit(dynamic.Synced, nil)
		synctest.Wait()
		assert.False(t, c.HasSynced())
		shop.emit(dynamic.Synced, nil)
		expect := func(want watch.EventType) {
			t.Helper()
			change, _ := next()
			assert.Equal(t, want, change.Type)
		}
		expect(dynamic.Synced)
		shop.emit(dynamic.NotServed, nil)
		expect(dynamic.NotServed)
		home.emit(dynamic.NotServed, nil)
		synctest.Wait()
		shop.emit(dynamic.Synced, nil)
		synctest.Wait()
		assert.EqualError(t, c.Health(), "cache /api/v1/pods: the server does not serve the resource")
		home.emit(dynamic.Synced, nil)
		expect(dynamic.Synced)
		assert.NoError(t, c.Health())
	})
}

func TestNamespaces_InterruptionsNameTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, shop, home := runningIn(t, cache.Options[object]{})
		for _, one := range []*script{shop, home} {
			one.progress("5")
			one.emit(dynamic.Synced, nil)
		}
		synctest.Wait()
		home.interrupt(errors.New("connection refused"))
		shop.progress("6")
		synctest.Wait()
		assert.EqualError(t, c.Health(), `cache /api/v1/pods: interrupted: namespace "home": connection refused`)
		home.progress("6")
		synctest.Wait()
		assert.NoError(t, c.Health())
	})
}

func TestNamespaces_RunEndsWithContextError(t *testing.T) {
	for range 20 { // the streams end at the same time
		synctest.Test(t, func(t *testing.T) {
			errCause := errors.New("the operator asked for it")
			ctx, cancel := context.WithCancelCause(t.Context())
			c := cache.New(scripts{"shop": newScript(), "home": newScript()}, &cache.Options[object]{Namespaces: []string{"shop", "home"}})
			var ended error
			var done sync.WaitGroup
			done.Go(func() { ended = c.Run(ctx) })
			synctest.Wait()
			cancel(errCause)
			done.Wait()
			require.ErrorIs(t, ended, context.Canceled)
			require.ErrorIs(t, ended, errCause)
			assert.ErrorContains(t, ended, "run cache /api/v1/pods: context canceled")
		})
	}
}

// callbackSource is a source that calls a function when it is followed.
type callbackSource struct {
	*script
	follow func()
}

func (f callbackSource) Namespace(string) cache.Source[object] { return f }

func (f callbackSource) Follow(context.Context, *dynamic.FollowOptions) iter.Seq2[change, error] {
	return func(func(change, error) bool) { f.follow() }
}

func TestNamespaces_InvalidSources(t *testing.T) {
	for name, tc := range map[string]struct {
		source     cache.Source[object]
		namespaces []string
		want       string
	}{
		"without namespaces": {newScript(), []string{"shop"}, "run cache /api/v1/pods: Options.Namespaces needs a source with a method Namespace; *cache_test.script has none"},
		"an empty name":      {scripts{}, []string{"shop", ""}, "run cache /api/v1/pods: Options.Namespaces contains an empty name (leave Namespaces out, and take AllNamespaces of the handle)"},
		"panic":              {callbackSource{newScript(), func() { panic("boom") }}, []string{"shop"}, `panic in the source of the cache of /api/v1/pods, for namespace "shop": boom`},
		"Goexit":             {callbackSource{newScript(), runtime.Goexit}, []string{"shop"}, `run cache /api/v1/pods: its goroutine for namespace "shop" was ended by runtime.Goexit`},
		"end without error":  {callbackSource{newScript(), func() {}}, []string{"shop"}, `run cache /api/v1/pods: every namespace is rejected: namespace "shop": its source ended without an error`},
	} {
		t.Run(name, func(t *testing.T) {
			err := cache.New(tc.source, &cache.Options[object]{Namespaces: tc.namespaces}).Run(t.Context())
			assert.ErrorContains(t, err, tc.want)
		})
	}
}
