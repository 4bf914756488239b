package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serveWith is serve with options.
func serveWith(t *testing.T, opts transport.Options, handler http.HandlerFunc) *transport.Conn {
	t.Helper()
	server := httptest.NewServer(handler)
	conn, err := transport.Open(&transport.Config{Server: server.URL + "/prefix/", Token: transport.NewSecret("s3cret"), Options: opts})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); server.Close() })
	return conn
}

func do(t *testing.T, conn *transport.Conn, req *transport.Request) error {
	t.Helper()
	response, err := conn.Do(t.Context(), req)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestObserveSeesEveryAttemptAsTheAuditLogNamesIt(t *testing.T) {
	var seen []string
	conn := serveWith(t, transport.Options{Observe: func(_ context.Context, a transport.Attempt) {
		seen = append(seen, fmt.Sprintf("%s %s", a.Verb, a.Resource))
		assert.Equal(t, 200, a.Code)
		assert.Equal(t, 1, a.Number)
		assert.NotContains(t, a.URL, "?")
	}}, func(http.ResponseWriter, *http.Request) {})
	for _, tc := range []struct{ method, path, want string }{
		{"GET", "/api/v1/pods", "list pods"},
		{"GET", "/api/v1/pods?watch=1", "watch pods"},
		{"GET", "/apis/apps/v1/namespaces/shop/deployments?watch=true", "watch deployments.apps"},
		{"GET", "/apis/apps/v1/namespaces/shop/deployments/web", "get deployments.apps"},
		{"GET", "/api/v1/namespaces/shop/pods/web/log", "get pods/log"},
		{"POST", "/api/v1/namespaces/shop/pods", "create pods"},
		{"POST", "/api/v1/namespaces/shop/pods/web/eviction", "create pods/eviction"},
		{"PUT", "/apis/apps/v1/namespaces/shop/deployments/web/scale", "update deployments.apps/scale"},
		{"PATCH", "/api/v1/nodes/n1", "patch nodes"},
		{"DELETE", "/api/v1/namespaces/shop/pods/web", "delete pods"},
		{"DELETE", "/api/v1/namespaces/shop/pods", "deletecollection pods"},
		{"GET", "/api/v1/namespaces", "list namespaces"},
		{"GET", "/api/v1/namespaces/shop", "get namespaces"},
		{"PUT", "/api/v1/namespaces/shop/finalize", "update namespaces/finalize"},
		{"GET", "/api/v1/namespaces/shop/status", "get namespaces/status"},
		{"GET", "/version", "get "},
		{"GET", "/apis", "get "},
		{"GET", "/api/v1", "get "},
		{"GET", "/apis/apps/v1", "get "},
	} {
		seen = nil
		require.NoError(t, do(t, conn, &transport.Request{Method: tc.method, Path: tc.path}))
		assert.Equal(t, []string{tc.want}, seen, "%s %s", tc.method, tc.path)
	}
}

func TestObserveTellsOfRetriesAndWaits(t *testing.T) {
	var attempts []transport.Attempt
	var asked atomic.Int32
	conn := serveWith(t, transport.Options{Observe: func(_ context.Context, a transport.Attempt) { attempts = append(attempts, a) }},
		func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
	require.NoError(t, do(t, conn, &transport.Request{Path: "/api/v1/pods?labelSelector=s3cret"}))
	require.Len(t, attempts, 2)
	assert.Equal(t, []int{429, 200}, []int{attempts[0].Code, attempts[1].Code})
	assert.Equal(t, []int{1, 2}, []int{attempts[0].Number, attempts[1].Number})
	assert.Zero(t, attempts[0].Waited)
	assert.GreaterOrEqual(t, attempts[1].Waited, time.Second)
	assert.NotContains(t, fmt.Sprintf("%+v", attempts), "s3cret")

	attempts = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := conn.Do(ctx, &transport.Request{Path: "/api"})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, attempts, 1)
	assert.Zero(t, attempts[0].Code)
	require.ErrorIs(t, attempts[0].Err, context.Canceled)
}

// turns is a limiter that counts, and refuses after so many.
type turns struct{ left int }

func (l *turns) Wait(context.Context) error {
	if l.left--; l.left < 0 {
		return errors.New("no turns left")
	}
	return nil
}

func TestALimiterIsAskedBeforeEveryAttempt(t *testing.T) {
	limiter := &turns{left: 2}
	var asked atomic.Int32
	conn := serveWith(t, transport.Options{Limiter: limiter}, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	err := do(t, conn, &transport.Request{Path: "/api?token=s3cret"})
	require.ErrorContains(t, err, "wait for the limiter: no turns left")
	assert.NotContains(t, err.Error(), "s3cret")
	assert.EqualValues(t, 2, asked.Load())
}

// seeing wraps a round tripper and looks at its requests.
type seeing struct {
	http.RoundTripper
	look func(*http.Request)
}

func (s seeing) RoundTrip(req *http.Request) (*http.Response, error) {
	s.look(req)
	return s.RoundTripper.RoundTrip(req)
}

func TestAWrapperSeesRequestsWithoutCredentials(t *testing.T) {
	var seen, arrived int
	conn := serveWith(t, transport.Options{Wrap: func(next http.RoundTripper) http.RoundTripper {
		return seeing{next, func(req *http.Request) {
			seen++
			assert.NotContains(t, fmt.Sprint(req.Header), "s3cret")
			req.Header.Set("Traceparent", "00-1-2-03")
		}}
	}}, func(_ http.ResponseWriter, r *http.Request) {
		arrived++
		assert.Equal(t, "Bearer s3cret", r.Header.Get("Authorization"))
		assert.Equal(t, "00-1-2-03", r.Header.Get("Traceparent"))
	})
	require.NoError(t, do(t, conn, &transport.Request{Path: "/api"}))
	assert.Equal(t, []int{1, 1}, []int{seen, arrived})
}

func TestWarningsAreHeardOnceAndCanBeCollectedForACall(t *testing.T) {
	var heard []string
	conn := serveWith(t, transport.Options{Warn: func(_ context.Context, text string) { heard = append(heard, text) }},
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Warning", `299 - "unknown field \"spec.foo\""`)
			w.Header().Add("Warning", `299 - "unknown field \"spec.foo\""`)
			w.Header().Add("Warning", `110 - "stale"`)
			w.Header().Add("Warning", `broken`)
			if r.URL.Path == "/prefix/old" {
				w.Header().Add("Warning", `299 - "v1beta1 is deprecated"`)
				w.WriteHeader(http.StatusConflict)
			}
		})
	const unknown, deprecated = `unknown field "spec.foo"`, "v1beta1 is deprecated"
	first, warnings := transport.CollectWarnings(t.Context())
	response, err := conn.Do(first, &transport.Request{Path: "/new"})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, []string{unknown}, warnings.All())

	second, warnings := transport.CollectWarnings(t.Context())
	_, err = conn.Do(second, &transport.Request{Path: "/old"})
	require.Error(t, err, "a refusal may carry warnings, too")
	assert.Equal(t, []string{unknown, deprecated}, warnings.All())
	assert.Equal(t, []string{unknown, deprecated}, heard)
}
