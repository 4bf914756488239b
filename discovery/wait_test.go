package discovery

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/scripted"
)

// hasGroup is a condition of WaitFor.
func hasGroup(name string) func(*Snapshot) bool {
	return func(s *Snapshot) bool { return groupNamed(s.Groups, name) != nil }
}

func TestClient_WaitForRefreshesUntilServed(t *testing.T) {
	for name, test := range map[string]struct {
		lag, latest          time.Duration
		minChecks, maxChecks int
		before               http.HandlerFunc
	}{
		"served":               {0, 0, 1, 1, nil},
		"after a moment":       {300 * time.Millisecond, 400 * time.Millisecond, 8, 40, nil},
		"after a minute":       {time.Minute, 72 * time.Second, 20, 70, nil},
		"after an hour":        {time.Hour, time.Hour + 15*time.Second, 200, 500, nil},
		"after failures":       {20 * time.Second, 24 * time.Second, 5, 100, scripted.Status(http.StatusInternalServerError, "InternalError")},
		"after denials":        {2 * time.Second, 3 * time.Second, 5, 60, scripted.Status(http.StatusForbidden, "Forbidden")},
		"after dead responses": {40 * time.Second, 80 * time.Second, 2, 10, scripted.Watch()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				client := New(scripted.Connect(t, server, nil), nil)
				if test.lag > 0 {
					time.AfterFunc(test.lag, func() { server.serve(deployments + things) })
					if test.before != nil {
						server.Handle("GET /apis", test.before)
					}
				} else {
					server.serve(things)
				}
				snapshot, err := client.WaitForSnapshot(t.Context(), hasGroup("late"))
				require.NoError(t, err)
				assert.Same(t, client.Latest(), snapshot)
				assert.True(t, hasGroup("late")(snapshot))
				assert.LessOrEqual(t, time.Since(server.began), test.latest)
				assert.GreaterOrEqual(t, server.Discoveries(), test.minChecks)
				assert.LessOrEqual(t, server.Discoveries(), test.maxChecks)
			})
		})
	}
}

func TestClient_WaitForChecksLatestSnapshot(t *testing.T) {
	for name, requests := range map[string]int{"first requests": 0, "at the rate limit": limiterBurst} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				deleted := &Snapshot{Groups: []Group{{Name: "late"}}}
				client := New(scripted.Connect(t, server, nil), &Options{Snapshot: deleted})
				client.limiter.Reserve(requests)
				time.AfterFunc(time.Minute, func() { server.serve(things) })
				snapshot, err := client.WaitForSnapshot(t.Context(), hasGroup("late"))
				require.NoError(t, err)
				assert.NotSame(t, deleted, snapshot)
				assert.GreaterOrEqual(t, time.Since(server.began), time.Minute)
			})
		})
	}
	offline := &Snapshot{Groups: []Group{{Name: "late"}}}
	snapshot, err := NewOffline(offline).WaitForSnapshot(t.Context(), hasGroup("late"))
	require.NoError(t, err)
	assert.Same(t, offline, snapshot)
}

func TestClient_WaitForSeesOthersRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		client := New(scripted.Connect(t, server, nil), nil)
		time.AfterFunc(time.Hour, func() {
			server.serve(things)
			_, err := client.Refresh(t.Context())
			assert.NoError(t, err)
		})
		_, err := client.WaitForSnapshot(t.Context(), hasGroup("late"))
		require.NoError(t, err)
		assert.Equal(t, time.Hour, time.Since(server.began))
	})
}

func TestClient_ConcurrentWaitsShareRefreshes(t *testing.T) {
	requests := func(waits int) int {
		var count int
		synctest.Test(t, func(t *testing.T) {
			server := newServer()
			client := New(scripted.Connect(t, server, nil), nil)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			for range waits {
				all.Go(func() {
					_, err := client.WaitForSnapshot(ctx, hasGroup("late"))
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				})
			}
			all.Wait()
			count = server.Discoveries()
		})
		return count
	}
	one := requests(1)
	assert.Less(t, requests(50), 3*one, "one wait takes %d", one)
}

func TestClient_WaitForErrors(t *testing.T) {
	for name, test := range map[string]struct {
		respond http.HandlerFunc
		within  time.Duration
		check   func(error) bool
		text    string
	}{
		"never served":    {nil, time.Hour, nil, "discover resources of http://server.test: context deadline exceeded"},
		"last failure":    {scripted.Status(http.StatusInternalServerError, "InternalError"), time.Hour, apierrors.IsInternalError, "context deadline exceeded; the last refresh: "},
		"denied for good": {scripted.Status(http.StatusForbidden, "Forbidden"), 8 * time.Second, apierrors.IsForbidden, "as scripted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				if test.respond != nil {
					server.handleAll(test.respond)
				}
				client := New(scripted.Connect(t, server, nil), nil)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err := client.WaitForSnapshot(ctx, hasGroup("late"))
				require.ErrorContains(t, err, test.text)
				if test.check != nil {
					assert.True(t, test.check(err), err)
				}
				assert.LessOrEqual(t, time.Since(server.began), test.within)
				assert.Equal(t, test.within == time.Hour, ctx.Err() != nil)
			})
		})
	}
	_, err := NewOffline(&Snapshot{}).WaitForSnapshot(t.Context(), hasGroup("late"))
	assert.ErrorIs(t, err, errOffline)
}
