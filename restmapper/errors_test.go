package restmapper_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
)

// faulty returns a mapper over a handler.
func faulty(t *testing.T, handle http.HandlerFunc) *restmapper.Mapper {
	t.Helper()
	return restmapper.New(connect(t, handle))
}

// legacy serves apps/v1 and metrics.k8s.io/v1beta1 as an older server does; metrics responds for the latter.
func legacy(metrics http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			_, _ = fmt.Fprint(w, `{"kind":"APIVersions","versions":[]}`)
		case "/apis":
			_, _ = fmt.Fprint(w, `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1"}]},
				{"name":"metrics.k8s.io","versions":[{"version":"v1beta1"}]}]}`)
		case "/apis/apps/v1":
			_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","resources":[{"name":"deployments","singularName":"deployment","kind":"Deployment","categories":["all"]}]}`)
		default:
			metrics(w, r)
		}
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":"broken"}`, code)
	}
}

func podMetrics(w http.ResponseWriter, _ *http.Request) {
	_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","resources":[{"name":"pods","singularName":"pod","kind":"PodMetrics"}]}`)
}

// requireUnavailable checks that nobody takes the error for a result, and that it has the server's.
func requireUnavailable(t *testing.T, err error, code int32) {
	t.Helper()
	var unavailable *restmapper.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	require.False(t, meta.IsNoMatchError(err), "%v", err)
	var said *apierrors.StatusError
	require.ErrorAs(t, err, &said)
	require.Equal(t, code, said.Status().Code)
}

func TestMapper_NameInUnreadableGroupIsUnavailable(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		mapper := faulty(t, legacy(status(code)))
		for _, name := range []string{"pods", "deploymnets", "pods.metrics.k8s.io", "pods.v1beta1.metrics.k8s.io", "pods.metrics"} {
			_, err := mapper.Resource(t.Context(), name)
			requireUnavailable(t, err, int32(code))
			require.ErrorContains(t, err, "metrics.k8s.io/v1beta1 could not be read", name)
		}
		_, err := mapper.Resource(t.Context(), "deploymnets")
		require.ErrorContains(t, err, "did you mean deployments.apps")
		_, err = mapper.Kind(t.Context(), schema.GroupVersionKind{Group: "metrics.k8s.io", Kind: "PodMetrics"})
		requireUnavailable(t, err, int32(code))

		_, err = mapper.Kind(t.Context(), schema.GroupVersionKind{Group: "metrics", Kind: "PodMetrics"})
		assert.True(t, meta.IsNoMatchError(err), "a kind's group is whole: %v", err)
		_, err = mapper.Resource(t.Context(), "all")
		assert.True(t, meta.IsNoMatchError(err), "a category that is known: %v", err)

		mapping, err := mapper.Resource(t.Context(), "deployments")
		require.NoError(t, err, "the group that can be read is not spoilt")
		assert.Equal(t, "apps", mapping.GVR.Group)
		for _, name := range []string{"nothing.apps", "pods.v2.metrics.k8s.io", "nothing.other.io"} {
			_, err = mapper.Resource(t.Context(), name)
			assert.True(t, meta.IsNoMatchError(err), "%s is not there: %v", name, err)
		}
		_, err = mapper.Kind(t.Context(), schema.GroupVersionKind{Group: "apps", Kind: "Nothing"})
		assert.True(t, meta.IsNoMatchError(err), "%v", err)
	}
}

func TestMapper_FailedGroupKeepsLastResources(t *testing.T) {
	var broken atomic.Bool
	mapper := faulty(t, legacy(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			status(http.StatusServiceUnavailable)(w, r)
			return
		}
		podMetrics(w, r)
	}))
	_, err := mapper.Resource(t.Context(), "pods")
	require.NoError(t, err)
	broken.Store(true)
	_, err = mapper.Resource(t.Context(), "nothing.metrics.k8s.io")
	requireUnavailable(t, err, http.StatusServiceUnavailable)
	for _, name := range []string{"pods", "PodMetrics", "pods.metrics.k8s.io"} {
		mapping, err := mapper.Resource(t.Context(), name)
		require.NoError(t, err, name)
		assert.Equal(t, "metrics.k8s.io", mapping.GVR.Group)
	}
	_, err = mapper.Resource(t.Context(), "deploymnets")
	assert.True(t, meta.IsNoMatchError(err), "what the group had is known, and this was not in it: %v", err)
}

func TestMapper_StaleGroupResolvesLastResources(t *testing.T) {
	mapper, _ := serve(t, served)
	mapping, err := mapper.Resource(t.Context(), "gears.v2.c.example.com")
	require.NoError(t, err)
	assert.Equal(t, "v2", mapping.GVR.Version)
	_, err = mapper.Resource(t.Context(), "wheels.c.example.com")
	var unavailable *restmapper.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	assert.False(t, meta.IsNoMatchError(err))
	assert.ErrorContains(t, err, "c.example.com/v2 is stale")
	assert.ErrorContains(t, err, "v2.c.example.com")
}

func TestMapper_FailedDiscoveryIsUnavailable(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	healthy := legacy(podMetrics)
	mapper := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() && r.URL.Path == "/apis" {
			status(http.StatusServiceUnavailable)(w, r)
			return
		}
		healthy(w, r)
	})
	_, err := mapper.Resource(t.Context(), "deployments")
	requireUnavailable(t, err, http.StatusServiceUnavailable)
	broken.Store(false)
	_, err = mapper.Resource(t.Context(), "deployments")
	require.NoError(t, err, "a failure is not remembered")
	broken.Store(true)
	_, err = mapper.Resource(t.Context(), "deployments")
	require.NoError(t, err)
	for range 2 {
		_, err = mapper.Resource(t.Context(), "nothing")
		requireUnavailable(t, err, http.StatusServiceUnavailable)
		_, err = mapper.RESTMapper(t.Context()).RESTMapping(schema.GroupKind{Group: "apps", Kind: "Nothing"})
		requireUnavailable(t, err, http.StatusServiceUnavailable)
	}
	reset := mapper.RESTMapper(t.Context())
	reset.Reset()
	for range 2 {
		_, err = reset.ResourceFor(schema.GroupVersionResource{Resource: "deployments"})
		requireUnavailable(t, err, http.StatusServiceUnavailable)
	}
	broken.Store(false)
	_, err = reset.ResourceFor(schema.GroupVersionResource{Resource: "deployments"})
	require.NoError(t, err)
}

func TestMapper_UnreachableServerIsUnavailable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	require.NoError(t, err)
	defer conn.Close()
	_, err = restmapper.New(discovery.New(conn, nil)).Resource(t.Context(), "pods")
	var unavailable *restmapper.UnavailableError
	require.ErrorAs(t, err, &unavailable)
	assert.Equal(t, "pods", unavailable.Name)
	assert.False(t, meta.IsNoMatchError(err))
}

func TestMapper_HangingServerEndsWithContext(t *testing.T) {
	mapper := faulty(t, legacy(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := mapper.Resource(ctx, "pods")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.False(t, meta.IsNoMatchError(err), "%v", err)
}

func TestNoMatchError_RemovedAt(t *testing.T) {
	lines := served + `
r.example.com/v1 robots robot Robot rb
r.example.com/v1beta1 robots robot Robot rb
q.example.com/v1 queens queen Queen qn`
	mapper, server := serve(t, lines)
	_, err := mapper.Resource(t.Context(), "robots.v1beta1.r.example.com")
	require.NoError(t, err)
	server.Serve(served + "\nr.example.com/v1 robots robot Robot rb")
	var noMatch *restmapper.NoMatchError

	for _, name := range []string{"queens", "qn", "Queen", "queen.q.example.com", "queens.v1.q.example.com"} {
		_, err = mapper.Resource(t.Context(), name)
		if name == "queens" {
			// Nobody has looked since the removal, so the mapping is still the last known one.
			require.NoError(t, err)
			_, err = mapper.Resource(t.Context(), "nothing")
			require.ErrorAs(t, err, &noMatch)
			assert.Zero(t, noMatch.RemovedAt)
			_, err = mapper.Resource(t.Context(), name)
		}
		require.ErrorAs(t, err, &noMatch, name)
		assert.WithinDuration(t, time.Now(), noMatch.RemovedAt, time.Minute, name)
		assert.ErrorContains(t, err, "it did until", name)
		assert.True(t, meta.IsNoMatchError(err), name)
	}
	_, err = mapper.Resource(t.Context(), "robots.v1beta1.r.example.com")
	require.ErrorAs(t, err, &noMatch)
	assert.Equal(t, []string{"v1"}, noMatch.ServedVersions)
	assert.NotZero(t, noMatch.RemovedAt)
	_, err = mapper.Kind(t.Context(), schema.GroupVersionKind{Group: "r.example.com", Version: "v7", Kind: "Robot"})
	require.ErrorAs(t, err, &noMatch)
	assert.Zero(t, noMatch.RemovedAt, "another version was removed")
	mapping, err := mapper.Resource(t.Context(), "robots")
	require.NoError(t, err, "a version that is gone does not spoil the rest of its group")
	assert.Equal(t, "v1", mapping.GVR.Version)
}

func TestMapper_ChangedDefinitionIsResolvedAgain(t *testing.T) {
	mapper, server := serve(t, served+"\nr.example.com/v1 robots robot Robot rb")
	mapping, err := mapper.Resource(t.Context(), "rb")
	require.NoError(t, err)
	require.True(t, mapping.Namespaced)
	server.Serve(served + "\ncluster r.example.com/v1 robota robot Robot rb")
	mapping, err = mapper.Resource(t.Context(), "robota")
	require.NoError(t, err)
	assert.False(t, mapping.Namespaced)
	for _, name := range []string{"rb", "robot", "Robot"} {
		mapping, err = mapper.Resource(t.Context(), name)
		require.NoError(t, err)
		assert.Equal(t, "robota", mapping.GVR.Resource)
	}
	_, err = mapper.Resource(t.Context(), "robots")
	var noMatch *restmapper.NoMatchError
	require.ErrorAs(t, err, &noMatch)
	assert.NotZero(t, noMatch.RemovedAt)
}
