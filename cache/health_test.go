package cache_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
)

func TestCache_HealthFollowsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newScript()
		c := cache.New(source, nil)
		expect := func(want string) {
			t.Helper()
			synctest.Wait()
			if want == "" {
				assert.NoError(t, c.Health())
				return
			}
			assert.EqualError(t, c.Health(), "cache /api/v1/pods: "+want)
		}
		expect("not synced: Run has not been called")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = c.Run(ctx) }()
		expect("not synced")
		source.interrupt(errors.New("connection refused"))
		expect("not synced: last interruption: connection refused")
		source.progress("1")
		source.emit(dynamic.Synced, nil)
		expect("")
		source.interrupt(nil) // closed by the server, as every few minutes
		expect("")
		source.interrupt(errors.New("unexpected EOF"))
		expect("interrupted: unexpected EOF")
		source.progress("1") // resumed
		expect("")
		source.emit(dynamic.NotServed, nil)
		expect("the server does not serve the resource")
		source.emit(dynamic.Synced, nil)
		expect("")
		cancel()
		expect("stopped: context canceled")
	})
}

// health is a cache's health.
type health struct{ err error }

func (h health) Health() error { return h.err }

func TestHealthHandler_Responses(t *testing.T) {
	long := strings.Repeat("x", 5000)
	rejected := &cache.RejectedError{Cache: "/api/v1/pods", Err: errors.New(`namespace "home": pods is forbidden`)}
	const rejectedLine = "cache /api/v1/pods: rejected: namespace \"home\": pods is forbidden\n"
	for name, tc := range map[string]struct {
		handler http.Handler
		code    int
		body    string
	}{
		"no caches":            {cache.HealthHandler(), 200, "ok\n"},
		"all synced":           {cache.HealthHandler(health{}, health{}), 200, "ok\n"},
		"one not":              {cache.HealthHandler(health{}, health{errors.New("cache /api/v1/pods: not synced")}), 503, "cache /api/v1/pods: not synced\n"},
		"several":              {cache.HealthHandler(health{errors.New("a")}, health{}, health{errors.New("b")}), 503, "a\nb\n"},
		"a rejected namespace": {cache.HealthHandler(health{}, health{rejected}), 200, rejectedLine},
		"a rejected namespace, and another cache not synced": {cache.HealthHandler(health{errors.New("a")}, health{rejected}), 503, "a\n" + rejectedLine},
		"sanitized": {cache.HealthHandler(health{errors.New("bad\x1b[31m\nok\x00")}), 503, "bad ok\ufffd\n"},
		"limited":   {cache.HealthHandler(health{errors.New(long)}), 503, long[:1024-len("…")] + "…\n"},
	} {
		t.Run(name, func(t *testing.T) {
			response := httptest.NewRecorder()
			tc.handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
			assert.Equal(t, tc.code, response.Code)
			assert.Equal(t, tc.body, response.Body.String())
			assert.Equal(t, "text/plain; charset=utf-8", response.Header().Get("Content-Type"))
			assert.Equal(t, "nosniff", response.Header().Get("X-Content-Type-Options"))
			assert.Equal(t, "no-store", response.Header().Get("Cache-Control"))
		})
	}
}

func TestHealthHandler_TakesCaches(t *testing.T) {
	c := cache.New(newScript(), nil)
	response := httptest.NewRecorder()
	cache.HealthHandler(c).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody))
	require.Equal(t, http.StatusServiceUnavailable, response.Code)
	assert.Equal(t, "cache /api/v1/pods: not synced: Run has not been called\n", response.Body.String())
}
