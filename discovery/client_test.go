package discovery_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/scripted"
)

const (
	v2      = `application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList;charset=utf-8`
	v2beta1 = `application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList`
	plain   = `application/json`
)

// response is an HTTP response. The zero code means 200.
type response struct {
	code              int
	contentType, body string
}

func (a response) respond(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", a.contentType)
	if a.code != 0 {
		w.WriteHeader(a.code)
	}
	_, _ = io.WriteString(w, a.body)
}

// script returns a client of a server that has responses by path, and 404 elsewhere.
func script(t *testing.T, responses map[string]response) (*discovery.Client, *scripted.Server) {
	t.Helper()
	server := scripted.New("")
	server.Handle("GET /api", scripted.NotServed)
	server.Handle("GET /apis", scripted.NotServed)
	for path, reply := range responses {
		server.Handle("GET "+path, reply.respond)
	}
	return discovery.New(scripted.Connect(t, server, nil), nil), server
}

// aggregatedCore is /api as a server with aggregated discovery serves it, with what may be odd in it: a null kind.
const aggregatedCore = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
 {"metadata":{"creationTimestamp":null},"versions":[{"version":"v1","freshness":"Current","resources":[
  {"resource":"pods","responseKind":{"group":"","version":"v1","kind":"Pod"},"scope":"Namespaced","singularResource":"pod",
   "verbs":["get","list"],"shortNames":["po"],"categories":["all"],
   "subresources":[{"subresource":"exec","responseKind":{"group":"","version":"v1","kind":"PodExecOptions"},"verbs":["create","get"]}]},
  {"resource":"ghosts","responseKind":null,"scope":"Cluster","singularResource":"","verbs":[],
   "subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get"]},
                   {"subresource":"raw","responseKind":null,"verbs":["get"]}]}]}]}]}`

const aggregatedApps = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[
  {"version":"v1","freshness":"Stale","resources":[{"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["get"]}]},
  {"version":"v1beta1","freshness":"Current"}]}]}`

func TestRefresh_AggregatedTakesTwoRequests(t *testing.T) {
	for _, contentType := range []string{v2, v2beta1} {
		client, server := script(t, map[string]response{
			"/api": {contentType: contentType, body: aggregatedCore}, "/apis": {contentType: contentType, body: aggregatedApps},
		})
		snapshot, err := client.Snapshot(t.Context())
		require.NoError(t, err)

		pods := schema.GroupVersion{Version: "v1"}
		assert.True(t, snapshot.Aggregated)
		assert.Equal(t, []discovery.Group{
			{Name: "", Versions: []discovery.Version{{Name: "v1", Resources: []*discovery.Resource{
				{
					GVR: pods.WithResource("pods"), GVK: pods.WithKind("Pod"), Singular: "pod", ShortNames: []string{"po"},
					Categories: []string{"all"}, Namespaced: true, Verbs: []string{"get", "list"},
					Subresources: []discovery.Subresource{{Name: "exec", GVK: pods.WithKind("PodExecOptions"), Verbs: []string{"create", "get"}}},
				},
				{
					GVR: pods.WithResource("ghosts"), Verbs: []string{},
					Subresources: []discovery.Subresource{
						{Name: "scale", GVK: schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, Verbs: []string{"get"}},
						{Name: "raw", Verbs: []string{"get"}},
					},
				},
			}}}},
			{Name: "apps", Versions: []discovery.Version{
				{Name: "v1", Stale: true, Resources: []*discovery.Resource{{
					GVR:      schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
					GVK:      schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
					Singular: "deployment", Namespaced: true, Verbs: []string{"get"},
				}}},
				{Name: "v1beta1"},
			}},
		}, snapshot.Groups)

		again, err := client.Snapshot(t.Context())
		require.NoError(t, err)
		assert.Same(t, snapshot, again)
		assert.Equal(t, 2, server.Count())
	}
}

const (
	legacyCore   = `{"kind":"APIVersions","versions":["v1"]}`
	legacyGroups = `{"kind":"APIGroupList","apiVersion":"v1","groups":[
		{"name":"apps","versions":[{"groupVersion":"apps/v1beta1","version":"v1beta1"},{"groupVersion":"apps/v1","version":"v1"}],
		 "preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`
	legacyV1 = `{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"pods/exec","singularName":"","namespaced":true,"kind":"PodExecOptions","verbs":["create"]},
		{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"],"shortNames":["po"],"categories":["all"]},
		{"name":"pods/eviction","singularName":"","namespaced":true,"group":"policy","version":"v1","kind":"Eviction","verbs":["create"]}]}`
	legacyApps = `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
		{"name":"deployments","singularName":"","namespaced":true,"kind":"Deployment","verbs":["get"]}]}`
)

func legacy() map[string]response {
	return map[string]response{
		"/api":          {contentType: plain, body: legacyCore},
		"/apis":         {contentType: plain, body: legacyGroups},
		"/api/v1":       {contentType: plain, body: legacyV1},
		"/apis/apps/v1": {contentType: plain, body: legacyApps},
	}
}

func TestRefresh_LegacyRequestsEachGroupVersion(t *testing.T) {
	client, server := script(t, legacy())
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)

	core := schema.GroupVersion{Version: "v1"}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	assert.False(t, snapshot.Aggregated)
	assert.Equal(t, []discovery.Group{
		{Name: "", Versions: []discovery.Version{{Name: "v1", Resources: []*discovery.Resource{{
			GVR: core.WithResource("pods"), GVK: core.WithKind("Pod"), Singular: "pod", ShortNames: []string{"po"},
			Categories: []string{"all"}, Namespaced: true, Verbs: []string{"get"},
			Subresources: []discovery.Subresource{
				{Name: "exec", GVK: core.WithKind("PodExecOptions"), Verbs: []string{"create"}},
				{Name: "eviction", GVK: schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, Verbs: []string{"create"}},
			},
		}}}}},
		{Name: "apps", Versions: []discovery.Version{
			{Name: "v1", Resources: []*discovery.Resource{{GVR: apps.WithResource("deployments"), GVK: apps.WithKind("Deployment"), Namespaced: true, Verbs: []string{"get"}}}},
			{Name: "v1beta1"}, // 404: gone since the groups were listed
		}},
	}, snapshot.Groups)
	assert.Equal(t, 5, server.Count())
}

func TestRefresh_OneAggregatedRootIsNotEnough(t *testing.T) {
	responses := legacy()
	responses["/api"] = response{contentType: v2, body: aggregatedCore}
	client, _ := script(t, responses)
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	assert.False(t, snapshot.Aggregated)
	assert.Len(t, snapshot.Groups[0].Versions[0].Resources, 1, "the resources are those of /api/v1, without the ghosts of the aggregated response")
	assert.Len(t, snapshot.Groups[1].Versions[0].Resources, 1)
}

func TestRefresh_BrokenGroupVersionFailsAlone(t *testing.T) {
	for name, broken := range map[string]response{
		"an error":      {code: http.StatusInternalServerError},
		"no JSON":       {body: "<html>"},
		"another kind":  {body: `{"kind":"APIGroupList"}`},
		"a wrong shape": {body: `{"kind":"APIResourceList","resources":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			responses := legacy()
			responses["/apis/apps/v1"] = broken
			client, _ := script(t, responses)
			snapshot, err := client.Snapshot(t.Context())
			require.NoError(t, err)
			assert.Len(t, snapshot.Groups[0].Versions[0].Resources, 1)
			require.ErrorContains(t, snapshot.Groups[1].Versions[0].Err, "/apis/apps/v1")
		})
	}
}

func TestRefresh_AcceptsServerWithOneRoot(t *testing.T) {
	client, _ := script(t, map[string]response{"/apis": {contentType: v2, body: aggregatedApps}})
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "apps", snapshot.Groups[0].Name)

	client, _ = script(t, map[string]response{"/api": {contentType: v2, body: aggregatedCore}})
	snapshot, err = client.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Len(t, snapshot.Groups, 1)
}

func TestRefresh_RejectsOtherResponses(t *testing.T) {
	for name, tc := range map[string]struct {
		responses map[string]response
		errText   string
	}{
		"no such paths":               {nil, "is this a Kubernetes API server?"},
		"a page":                      {map[string]response{"/api": {body: "<html>"}, "/apis": {body: "<html>"}}, "decode APIVersions"},
		"an unknown kind":             {map[string]response{"/api": {contentType: plain, body: legacyCore}, "/apis": {contentType: v2, body: `{"kind":"Other"}`}}, `kind is "Other"`},
		"no kind":                     {map[string]response{"/api": {contentType: plain, body: `{}`}, "/apis": {contentType: plain, body: legacyGroups}}, `kind is ""`},
		"aggregated of a later draft": {map[string]response{"/api": {contentType: "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList", body: aggregatedCore}, "/apis": {contentType: plain, body: legacyGroups}}, "decode APIVersions"},
		"half a response":             {map[string]response{"/api": {contentType: plain, body: legacyCore}, "/apis": {contentType: v2, body: aggregatedApps[:40]}}, "decode APIGroupDiscoveryList"},
		"forbidden":                   {map[string]response{"/api": {contentType: plain, body: legacyCore}, "/apis": {code: 403}}, "403 Forbidden"},
		"unavailable":                 {map[string]response{"/api": {contentType: plain, body: legacyCore}, "/apis": {code: 503}}, "503 Service Unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := script(t, tc.responses)
			_, err := client.Snapshot(t.Context())
			require.ErrorContains(t, err, tc.errText)
			require.ErrorContains(t, err, "discover resources of http://server.test")
		})
	}
	client, _ := script(t, map[string]response{"/api": {code: 503}, "/apis": {code: 503}})
	_, err := client.Snapshot(t.Context())
	assert.True(t, apierrors.IsServiceUnavailable(err), "what the server said is still a StatusError: %v", err)
}

func TestRefresh_ErrorKeepsLatestSnapshot(t *testing.T) {
	client, server := script(t, legacy())
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	server.Handle("GET /apis", response{code: 500}.respond)
	_, err = client.Refresh(t.Context())
	require.Error(t, err)
	again, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Same(t, snapshot, again)
}

// TestRefresh_OverlappingCallsShareLaterResponse holds one refresh in flight while others pile up behind
// it: they must not take its response, which may be older than what they ask about, but may share the next one.
func TestRefresh_OverlappingCallsShareLaterResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := scripted.New("round1.example/v1")
		document := scripted.New("round1.example/v1")
		server.Handle("GET /apis", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			document.ServeHTTP(w, r)
		})
		client := discovery.New(scripted.Connect(t, server, nil), nil)
		var all sync.WaitGroup
		all.Go(func() {
			_, err := client.Refresh(t.Context())
			assert.NoError(t, err)
		})
		synctest.Wait() // the first refresh is in flight
		for range 20 {
			all.Go(func() {
				snapshot, err := client.Refresh(t.Context())
				if assert.NoError(t, err) {
					assert.Equal(t, "round2.example", snapshot.Groups[0].Name)
				}
			})
		}
		synctest.Wait()
		time.AfterFunc(1500*time.Millisecond, func() { document.Serve("round2.example/v1") })
		all.Wait()
		assert.Equal(t, 2, server.Discoveries())
	})
}

func TestRefresh_WaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := discovery.New(scripted.Connect(t, http.HandlerFunc(scripted.Hang), nil), nil)
		first, cancelFirst := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := client.Refresh(first); done <- err }()
		synctest.Wait()

		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := client.Refresh(canceled)
		require.ErrorIs(t, err, context.Canceled)
		cancelFirst()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

func TestClient_ServerVersion(t *testing.T) {
	client, _ := script(t, map[string]response{"/version": {contentType: plain, body: `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`}})
	version, err := client.ServerVersion(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "v1.36.3", version.GitVersion)

	client, _ = script(t, map[string]response{"/version": {body: "<html>"}})
	_, err = client.ServerVersion(t.Context())
	require.ErrorContains(t, err, "decode version")
}

func FuzzAggregatedResponse(f *testing.F) {
	f.Add([]byte(aggregatedCore))
	f.Add([]byte(aggregatedApps))
	f.Add([]byte(legacyGroups))
	var body atomic.Pointer[[]byte]
	conn := scripted.Connect(f, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", v2)
		_, _ = w.Write(*body.Load())
	}), nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		body.Store(&data)
		snapshot, err := discovery.New(conn, nil).Refresh(t.Context())
		if (snapshot == nil) == (err == nil) {
			t.Fatalf("snapshot %v, error %v", snapshot, err)
		}
	})
}
