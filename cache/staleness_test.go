package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// requireStaleness checks the staleness of a cache.
func requireStaleness(t *testing.T, c *cache.Cache[object], want time.Duration) {
	t.Helper()
	synctest.Wait()
	staleness, isKnown := c.Staleness()
	require.True(t, isKnown)
	require.Equal(t, want, staleness)
}

func TestStaleness_TimeSinceProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		receive func(*script)
		want    time.Duration // a minute later
	}{
		"bookmark":                     {func(s *script) { s.progress("9") }, time.Minute},
		"bookmark at the same version": {func(s *script) { s.progress("5") }, time.Minute},
		"change": {func(s *script) {
			s.emit(watch.Modified, pod("shop", "web", "web", 9))
			s.progress("9")
		}, time.Minute},
		"nothing":      {func(*script) {}, 3 * time.Minute},
		"interruption": {func(s *script) { s.interrupt(errors.New("unexpected EOF")) }, 3 * time.Minute},
		"resumed watch": {func(s *script) {
			s.interrupt(nil)
			s.progress("5") // accepted
		}, 3 * time.Minute},
		"event of a resumed watch": {func(s *script) {
			s.interrupt(nil)
			s.progress("5")
			s.progress("9")
		}, time.Minute},
		"relist": {func(s *script) {
			s.interrupt(errors.New("expired"))
			s.progress("9")
		}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, source := running(t, &cache.Options[object]{MaxStaleness: 2 * time.Minute})
				_, isKnown := c.Staleness()
				assert.False(t, isKnown)
				source.emit(watch.Added, pod("shop", "web", "web", 4))
				source.progress("5")
				source.emit(dynamic.Synced, nil)
				requireStaleness(t, c, 0)
				time.Sleep(2 * time.Minute)
				requireStaleness(t, c, 2*time.Minute)
				require.NoError(t, c.Health())
				tc.receive(source)
				time.Sleep(time.Minute)
				requireStaleness(t, c, tc.want)
				switch {
				case tc.want == time.Minute:
					assert.NoError(t, c.Health())
				case name == "interruption":
					assert.ErrorContains(t, c.Health(), "interrupted")
				default:
					assert.EqualError(t, c.Health(), "cache /api/v1/pods: stale: the last progress was 3m0s ago")
				}
			})
		})
	}
}

func TestStaleness_OldestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, shop, home := runningIn(t, cache.Options[object]{})
		for _, s := range []*script{shop, home} {
			_, isKnown := c.Staleness()
			assert.False(t, isKnown)
			s.progress("5")
			s.emit(dynamic.Synced, nil)
		}
		time.Sleep(time.Minute)
		shop.progress("6")
		requireStaleness(t, c, time.Minute)
		home.progress("6")
		requireStaleness(t, c, 0)
		time.Sleep(time.Minute)
		shop.progress("7")
		home.fail(errors.New("forbidden"))
		requireStaleness(t, c, 0)
	})
}

// TestStaleness_SilentConnection loses everything but the acceptance of resumed watches.
func TestStaleness_SilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := scripted.New("/v1 pods pod Pod po")
		server.Handle("WATCH /api/v1/pods", scripted.Watch(scripted.InitialEventsEnd("v1", "Pod", "5")), scripted.Watch())
		client := dynamic.New(scripted.Connect(t, server, &transport.Options{Namespace: "shop"}), nil)
		t.Cleanup(client.Close)
		pods, err := client.Resource(t.Context(), "pods")
		require.NoError(t, err)
		c := cache.New(pods.AllNamespaces(), &cache.Options[object]{MaxStaleness: 5 * time.Minute})
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()))
		time.Sleep(25 * time.Minute)
		require.Greater(t, len(server.Requests()), 2)
		requireStaleness(t, c, 25*time.Minute)
		assert.ErrorContains(t, c.Health(), "stale: the last progress was 25m0s ago")
	})
}

func TestWaitForStaleness_NextProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		wait := func(limit time.Duration) <-chan error {
			done := make(chan error, 1)
			go func() { done <- c.WaitForStaleness(t.Context(), limit) }()
			synctest.Wait()
			return done
		}
		first := wait(time.Minute)
		assert.Empty(t, first, "before the initial list")
		source.progress("5")
		require.NoError(t, <-first)
		source.emit(dynamic.Synced, nil)
		time.Sleep(time.Minute)
		require.NoError(t, <-wait(time.Minute))
		next := wait(59 * time.Second)
		time.Sleep(time.Minute)
		assert.Empty(t, next)
		source.interrupt(nil)
		source.progress("5")
		synctest.Wait()
		assert.Empty(t, next, "the acceptance of a watch is no progress")
		source.progress("5")
		require.NoError(t, <-next)
	})
}

func TestWaitForStaleness_Errors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.WaitForStaleness(ctx, time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, "cache /api/v1/pods: stale: context deadline exceeded (nothing has been received)")
		source.progress("5")
		synctest.Wait()
		time.Sleep(2 * time.Minute)
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err = c.WaitForStaleness(ctx, time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err, "cache /api/v1/pods: stale: context deadline exceeded (the last progress was 2m10s ago, and at most 1m0s was required)")
		source.fail(errors.New("over"))
		assert.ErrorContains(t, c.WaitForStaleness(t.Context(), 0), "stale: stopped: over (the last progress was 2m10s ago")
	})
}
