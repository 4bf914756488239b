package dynamic_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// halves has the UIDs u0 to u19 by the half of the hashes that they are in.
func halves() (first, second []string) {
	lower := shard.Split(shard.UID, 2)[0]
	for i := range 20 {
		uid := fmt.Sprintf("%d-u", i) // the last characters of a text change few bits of its hash
		if lower.Matches("", types.UID(uid)) {
			first = append(first, uid)
		} else {
			second = append(second, uid)
		}
	}
	return first, second
}

// versionsOf are known objects by name, as UID and resourceVersion.
type versionsOf map[string][2]string

func (v versionsOf) Version(_, name string) (uid types.UID, resourceVersion string, found bool) {
	version, found := v[name]
	return types.UID(version[0]), version[1], found
}

func (v versionsOf) Keys() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name := range maps.Keys(v) {
			if !yield("home", name) {
				return
			}
		}
	}
}

func TestFollow_ShardOfAnyServer(t *testing.T) {
	mine, others := halves()
	foreign := podJSON("x", others[0], "2")
	const query = "shardSelector=shardRange%28object.metadata.uid%2C+%270x0000000000000000%27%2C+%270x8000000000000000%27%29"
	initial := strings.Replace(watchListQuery, "watch=", query+"&watch=", 1)
	unsharded := scripted.Event("ADDED", podJSON("a", mine[0], "1")) + scripted.Event("ADDED", foreign) +
		scripted.Event("ADDED", podJSON("b", mine[1], "3")) + initialEventsEnd("4") +
		scripted.Event("MODIFIED", podJSON("x", others[0], "5")) + scripted.Event("MODIFIED", podJSON("b", mine[1], "6")) +
		scripted.Event("DELETED", podJSON("x", others[0], "7")) + scripted.Event("ADDED", podJSON("x", mine[2], "8")) +
		scripted.Event("DELETED", podJSON("a", mine[0], "9")) + scripted.Event("ADDED", podJSON("a", others[1], "10"))
	want := []string{
		"STARTED", "ADDED a " + mine[0] + " 1", "ADDED b " + mine[1] + " 3", "SYNCED", "MODIFIED b " + mine[1] + " 6",
		"ADDED x " + mine[2] + " 8", "DELETED a " + mine[0] + " 9",
	}
	for name, tc := range map[string]struct {
		responses []response
		reports   int
		want      []string
		queries   []string
	}{
		"server without the feature": {
			responses: []response{{body: unsharded, stays: true}}, reports: 1, want: want, queries: []string{initial},
		},
		"resume after an object of another shard": {
			responses: []response{{body: unsharded}, {body: scripted.Event("MODIFIED", podJSON("b", mine[1], "12")), stays: true}}, reports: 1,
			want:    append(want[:len(want):len(want)], "MODIFIED b "+mine[1]+" 12"),
			queries: []string{initial, "resourceVersion=10&" + query + "&watch=true"},
		},
		"pages": {
			responses: []response{
				refuses(422, "Invalid"), {body: podList("4", podJSON("a", mine[0], "1"), foreign, podJSON("b", mine[1], "3"))},
				{body: scripted.Event("MODIFIED", foreign) + scripted.Event("DELETED", podJSON("b", mine[1], "9")), stays: true},
			},
			reports: 1,
			want:    []string{"STARTED", "ADDED a " + mine[0] + " 1", "ADDED b " + mine[1] + " 3", "SYNCED", "DELETED b " + mine[1] + " 9"},
			queries: []string{initial, query, "resourceVersion=4&" + query + "&watch=true"},
		},
		"server with the feature": {
			responses: []response{{body: scripted.Event("ADDED", podJSON("a", mine[0], "1")) + initialEventsEnd("4") + bookmark("5"), stays: true}},
			want:      []string{"STARTED", "ADDED a " + mine[0] + " 1", "SYNCED"},
			queries:   []string{initial},
		},
	} {
		for _, intern := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, Intern %t", name, intern), func(t *testing.T) {
				r, server := exchanging(t, tc.responses...)
				reports := 0
				opts := &dynamic.FollowOptions{Shard: shard.Split(shard.UID, 2)[0], OnUnsharded: func() { reports++ }, Intern: intern}
				assert.Equal(t, tc.want, follow(t, r, opts, len(tc.want)))
				assert.Equal(t, tc.queries, listWatchQueries(t, server))
				assert.Equal(t, tc.reports, reports)
			})
		}
	}
}

func TestFollow_ShardOfOtherTypes(t *testing.T) {
	mine, others := halves()
	r, _ := exchanging(t, response{stays: true, body: scripted.Event("ADDED", podJSON("x", others[0], "1")) +
		scripted.Event("ADDED", podJSON("a", mine[0], "2")) + initialEventsEnd("3") + scripted.Event("MODIFIED", podJSON("a", mine[0], "4"))})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var versions []string
	for change, err := range dynamic.As[unstructured.Lazy](r).Follow(ctx, &dynamic.FollowOptions{Shard: shard.Split(shard.UID, 2)[0]}) {
		require.NoError(t, err)
		if change.Object != nil {
			versions = append(versions, change.Object.GetName()+change.Object.GetResourceVersion())
		}
		if len(versions) == 2 {
			break
		}
	}
	assert.Equal(t, []string{"a2", "a4"}, versions)
}

func TestFollow_InvalidShardOptions(t *testing.T) {
	r, server := exchanging(t)
	for want, opts := range map[string]*dynamic.FollowOptions{
		"the shard selects no object":                              {Shard: shard.New(shard.UID)},
		"a ResourceVersion needs the KnownObjects of that version": {ResourceVersion: "5"},
	} {
		var last error
		for _, err := range r.Follow(t.Context(), opts) {
			last = err
		}
		assert.ErrorContains(t, last, want)
	}
	assert.Empty(t, server.seen())
}

func TestFollow_ContinuesAtResourceVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		responses []response
		want      []string
		queries   []string
	}{
		"accepted": {
			responses: []response{{stays: true, body: scripted.Event("DELETED", podJSON("a", "u1", "6")) + scripted.Event("MODIFIED", podJSON("b", "u2", "7")) +
				scripted.Event("ADDED", podJSON("c", "u3", "8"))}},
			want:    []string{"STARTED", "SYNCED", "DELETED a u1 6", "MODIFIED b u2 7", "ADDED c u3 8"},
			queries: []string{"resourceVersion=5&watch=true"},
		},
		"broken before an event": {
			responses: []response{{}, {stays: true, body: scripted.Event("MODIFIED", podJSON("b", "u2", "7"))}},
			want:      []string{"STARTED", "SYNCED", "MODIFIED b u2 7"},
			queries:   []string{"resourceVersion=5&watch=true", "resourceVersion=5&watch=true"},
		},
		"expired": {
			responses: []response{refuses(410, "Expired"), {stays: true, body: scripted.Event("ADDED", podJSON("b", "u2", "2")) +
				scripted.Event("ADDED", podJSON("c", "u3", "8")) + initialEventsEnd("9")}},
			want:    []string{"STARTED", "ADDED c u3 8", "DELETED a u1 1 inferred", "SYNCED"},
			queries: []string{"resourceVersion=5&watch=true", watchListQuery},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, server := exchanging(t, tc.responses...)
			known := versionsOf{"a": {"u1", "1"}, "b": {"u2", "2"}}
			var progress []string
			opts := &dynamic.FollowOptions{ResourceVersion: "5", KnownObjects: known, OnProgress: func(version string) { progress = append(progress, version) }}
			assert.Equal(t, tc.want, follow(t, r, opts, len(tc.want)))
			assert.Equal(t, tc.queries, listWatchQueries(t, server))
			assert.Contains(t, []string{"5", "9"}, progress[0])
		})
	}
}

// TestHandle_ProbeShardingRemembered calls ProbeSharding twice, and lists its requests.
func TestHandle_ProbeShardingRemembered(t *testing.T) {
	const selector = "limit=1&shardSelector=shardRange%28object.metadata.uid%2C+%270x0000000000000000%27%2C+%270x10000000000000000%27%29"
	for name, tc := range map[string]struct {
		resource schema.GroupVersionResource
		response http.HandlerFunc
		want     bool
		err      string
		requests int
		path     string
	}{
		"sharded": {
			response: scripted.JSON(`{"kind":"PodList","metadata":{"shardInfo":{"selector":"x"}},"items":[]}`), want: true, requests: 1,
			resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, path: "/api/v1/pods",
		},
		"unsharded": {
			response: scripted.JSON(`{"kind":"PodList","metadata":{},"items":[{"metadata":{"name":"web"}}]}`), requests: 1,
			resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, path: "/apis/apps/v1/deployments",
		},
		"custom": {
			response: scripted.JSON(`{"kind":"NamespaceList","metadata":{"shardInfo":{}},"items":[]}`), want: true, requests: 1,
			resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, path: "/api/v1/namespaces",
		},
		"forbidden": {
			response: scripted.Status(http.StatusForbidden, "Forbidden"), err: "probe the shards of ", requests: 1,
			resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, path: "/api/v1/namespaces",
		},
		"failed": {
			response: scripted.Status(http.StatusInternalServerError, "InternalError"), err: "probe the shards of ", requests: 2,
			resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, path: "/api/v1/pods",
		},
		"no list": {
			response: scripted.JSON(`[`), err: "GET /api/v1/pods: unexpected EOF", requests: 2,
			resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, path: "/api/v1/pods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := scripted.New(resources)
			server.Handle("", tc.response)
			handle := serveClient(t, server, nil).ForGVR(tc.resource)
			for range 2 {
				isSharded, err := handle.ProbeSharding(t.Context())
				assert.Equal(t, tc.want, isSharded)
				if tc.err == "" {
					assert.NoError(t, err)
				} else {
					assert.ErrorContains(t, err, tc.err)
				}
			}
			want := slices.Repeat([]string{"GET " + tc.path + "?" + selector}, tc.requests)
			assert.Equal(t, want, wire{server}.seen())
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	server := scripted.New(resources)
	_, err := serveClient(t, server, nil).ForGVR(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).ProbeSharding(ended)
	require.ErrorIs(t, err, context.Canceled)
}
