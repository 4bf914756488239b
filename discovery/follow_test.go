package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// changing is a server whose answers a test changes, with ETags as real ones give them. A path that hangs answers when
// its request is given up.
type changing struct {
	answers map[string]string // a body, or an HTTP status
	hang    map[string]bool
	full    atomic.Int32 // answers with a body
}

func (s *changing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.hang[r.URL.Path] {
		<-r.Context().Done()
		return
	}
	body, ok := s.answers[r.URL.Path]
	code := http.StatusNotFound
	if _, err := fmt.Sscanf(body, "%d", &code); err == nil || !ok {
		w.WriteHeader(code)
		return
	}
	if strings.Contains(body, "APIGroupDiscoveryList") {
		etag := fmt.Sprintf(`"%x"`, body)
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	s.full.Add(1)
	_, _ = w.Write([]byte(body))
}

func serving(t *testing.T, answers map[string]string) (*changing, *Client) {
	t.Helper()
	script := &changing{answers: answers, hang: map[string]bool{}}
	server := httptest.NewServer(script)
	conn, err := transport.Open(&transport.Config{Server: server.URL})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); server.Close() })
	return script, New(conn, nil)
}

// aggregated is a discovery root's answer: "apps/v1 deployments,!stale/v1 things".
func aggregated(groups string) string {
	var items []string
	for entry := range strings.SplitSeq(groups, ",") {
		gv, plural, _ := strings.Cut(entry, " ")
		freshness := "Current"
		if rest, stale := strings.CutPrefix(gv, "!"); stale {
			gv, freshness = rest, "Stale"
		}
		group, version, _ := strings.Cut(gv, "/")
		resources := ""
		if plural != "" {
			resources = fmt.Sprintf(`{"resource":%q,"responseKind":{"group":%q,"version":%q,"kind":%q},"scope":"Namespaced","verbs":["get"]}`,
				plural, group, version, "Kind-"+plural)
		}
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":%q,"freshness":%q,"resources":[%s]}]}`,
			group, version, freshness, resources))
	}
	return `{"kind":"APIGroupDiscoveryList","items":[` + strings.Join(items, ",") + `]}`
}

func refreshed(t *testing.T, client *Client) *Snapshot {
	t.Helper()
	snapshot, err := client.Refresh(t.Context())
	require.NoError(t, err)
	return snapshot
}

func TestAWarmRefreshIsTwoEmptyAnswersAndTheSameSnapshot(t *testing.T) {
	script, client := serving(t, map[string]string{"/api": aggregated("/v1 pods"), "/apis": aggregated("apps/v1 deployments")})
	first := refreshed(t, client)
	assert.EqualValues(t, 2, script.full.Load())
	assert.Same(t, first, refreshed(t, client))
	assert.EqualValues(t, 2, script.full.Load())

	script.answers["/apis"] = aggregated("apps/v1 deployments,batch/v1 jobs")
	second := refreshed(t, client)
	assert.EqualValues(t, 3, script.full.Load(), "only what changed is sent again")
	assert.Len(t, second.Groups, 3)
	assert.Len(t, first.Groups, 2, "a snapshot that was handed out stays as it is")
}

func TestWhatIsGoneIsRememberedUntilItIsBack(t *testing.T) {
	script, client := serving(t, map[string]string{"/api": aggregated("/v1 pods"), "/apis": aggregated("apps/v1 deployments,batch/v1 jobs")})
	refreshed(t, client)
	script.answers["/apis"] = aggregated("apps/v1 deployments")
	removed := refreshed(t, client).Removed
	require.Len(t, removed, 1)
	assert.Equal(t, "batch/v1, Resource=jobs", removed[0].Resource.GVR.String())
	script.answers["/api"] = aggregated("/v1 services")
	removed = refreshed(t, client).Removed
	require.Len(t, removed, 2)
	assert.Equal(t, "pods", removed[0].Resource.GVR.Resource, "the latest first")
	script.answers["/apis"] = aggregated("apps/v1 deployments,batch/v1 jobs")
	removed = refreshed(t, client).Removed
	require.Len(t, removed, 1)
}

func TestAStaleVersionKeepsWhatItServedLast(t *testing.T) {
	script, client := serving(t, map[string]string{"/api": aggregated("/v1 pods"), "/apis": aggregated("metrics/v1 nodes")})
	refreshed(t, client)
	script.answers["/apis"] = aggregated("!metrics/v1 ")
	snapshot := refreshed(t, client)
	version := snapshot.Groups[1].Versions[0]
	assert.False(t, version.Healthy())
	require.Len(t, version.Resources, 1)
	assert.Equal(t, "nodes", version.Resources[0].GVR.Resource)
	assert.Empty(t, snapshot.Removed)
}

func TestAFailingOrHangingVersionKeepsWhatItServedLastAndHoldsNothingBack(t *testing.T) {
	resources := func(gv, plural string) string {
		return fmt.Sprintf(`{"kind":"APIResourceList","groupVersion":%q,"resources":[{"name":%q,"kind":"K","namespaced":true,"verbs":["get"]}]}`, gv, plural)
	}
	groups := func(names ...string) string {
		var items []string
		for _, name := range names {
			items = append(items, fmt.Sprintf(`{"name":%q,"versions":[{"groupVersion":"%s/v1","version":"v1"}],"preferredVersion":{"version":"v1"}}`, name, name))
		}
		return `{"kind":"APIGroupList","groups":[` + strings.Join(items, ",") + `]}`
	}
	script, client := serving(t, map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/api/v1": resources("v1", "pods"),
		"/apis": groups("apps", "metrics", "denied"), "/apis/apps/v1": resources("apps/v1", "deployments"),
		"/apis/metrics/v1": resources("metrics/v1", "nodes"), "/apis/denied/v1": resources("denied/v1", "secrets"),
	})
	first := refreshed(t, client)
	assert.Same(t, first, refreshed(t, client), "an older server gives no ETag, but says the same")

	client.patience, client.grace = 200*time.Millisecond, 50*time.Millisecond
	script.hang["/apis/metrics/v1"] = true
	script.answers["/apis/denied/v1"] = "403"
	script.answers["/apis/apps/v1"] = resources("apps/v1", "daemonsets")
	snapshot := refreshed(t, client)
	for _, name := range []string{"metrics", "denied"} {
		version := byVersion(snapshot)[schema.GroupVersion{Group: name, Version: "v1"}]
		require.Error(t, version.Err)
		assert.Len(t, version.Resources, 1)
	}
	assert.NotNil(t, byName(snapshot)[schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}])
	require.Len(t, snapshot.Removed, 1)
	assert.Equal(t, "deployments", snapshot.Removed[0].Resource.GVR.Resource)
}

func TestAnOutageIsAnErrorAndTheSnapshotStays(t *testing.T) {
	script, client := serving(t, map[string]string{"/api": aggregated("/v1 pods"), "/apis": aggregated("apps/v1 deployments")})
	first := refreshed(t, client)
	script.answers["/apis"] = "503"
	_, err := client.Refresh(t.Context())
	require.Error(t, err)
	latest, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Same(t, first, latest)
}

func TestAGroupIsRefreshedAlone(t *testing.T) {
	script, client := serving(t, map[string]string{"/api": aggregated("/v1 pods"), "/apis": aggregated("apps/v1 deployments,shop/v1 carts")})
	refreshed(t, client)
	list := `{"kind":"APIResourceList","groupVersion":"shop/v1","resources":[
		{"name":"tills","kind":"Till","verbs":["get"]},{"name":"carts","kind":"Kind-carts","namespaced":true,"verbs":["get"]}]}`
	script.answers["/apis/shop"] = `{"kind":"APIGroup","name":"shop","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}`
	script.answers["/apis/shop/v1"] = list
	changes := difference(refreshed(t, client), after(t, client, "shop"))
	require.Len(t, changes, 1)
	assert.Equal(t, "tills", changes[0].After.GVR.Resource, "the cart is the same in both forms of discovery")

	delete(script.answers, "/apis/shop")
	assert.Len(t, after(t, client, "shop").Groups, 2)
	script.answers["/apis/shop"] = "500"
	require.Error(t, client.refreshGroup(t.Context(), "shop"))
	script.answers["/apis/new"] = strings.ReplaceAll(`{"kind":"APIGroup","name":"new","versions":[{"version":"v1"}]}`, "shop", "new")
	script.answers["/apis/new/v1"] = strings.ReplaceAll(list, "shop", "new")
	assert.Len(t, after(t, client, "new").Groups, 3)
	// The whole, which knows nothing of new, is built anew and not from what it said before.
	assert.Len(t, refreshed(t, client).Groups, 3)
	assert.Equal(t, "shop", refreshed(t, client).Groups[2].Name)
}

// slowly answers after a second as a server did when it was asked.
func slowly(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		handle(w, r)
	}
}

func TestRefresh_KeepsNewerAnswerOfGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLiveServer()
		server.replace("/apis/shop", answerJSON(`{"kind":"APIGroup","name":"shop","versions":[{"version":"v1"}]}`))
		server.replace("/apis/shop/v1", answerJSON(`{"kind":"APIResourceList","resources":[{"name":"carts","kind":"Cart"}]}`))
		client := New(connectPipes(t, server), nil)
		refreshed(t, client)
		server.replace("/apis", slowly(answerAggregated("apps/v1 deployments")))
		var whole sync.WaitGroup
		whole.Go(func() { refreshed(t, client) })
		time.Sleep(time.Second / 2)
		require.NoError(t, client.refreshGroup(t.Context(), "shop"))
		whole.Wait()
		assert.Contains(t, byGroup(client.Latest()), "shop", "the whole was asked for before")
		time.Sleep(time.Second)
		assert.NotContains(t, byGroup(refreshed(t, client)), "shop")
	})
}

func TestRefreshGroup_LosesToNewerWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLiveServer()
		client := New(connectPipes(t, server), nil)
		refreshed(t, client)
		server.replace("/apis/shop", slowly(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }))
		var group sync.WaitGroup
		group.Go(func() { assert.NoError(t, client.refreshGroup(t.Context(), "shop")) })
		time.Sleep(time.Second / 2)
		server.replace("/apis", answerAggregated("shop/v1 carts"))
		refreshed(t, client)
		group.Wait()
		assert.Contains(t, byGroup(client.Latest()), "shop")
	})
}

func after(t *testing.T, client *Client, group string) *Snapshot {
	t.Helper()
	require.NoError(t, client.refreshGroup(t.Context(), group))
	latest, _ := client.current()
	return latest
}

func TestAGroupThatChangesIsAskedForAtOnceAndSomeTimesMore(t *testing.T) {
	start := time.Now()
	due := newSchedule(start)
	assert.Equal(t, regularly, due.next(start))
	due.touch("shop", start)
	var asked []time.Duration
	for now, whole := start, false; !whole; {
		now = now.Add(due.next(now))
		var groups []string
		groups, whole = due.take(now)
		if whole {
			asked = append(asked, -now.Sub(start))
		}
		for range groups {
			asked = append(asked, now.Sub(start))
		}
	}
	assert.GreaterOrEqual(t, due.next(start.Add(settled)), regularly, "and then every now and again")
	assert.Equal(t, append(append([]time.Duration{}, followUps...), -settled), asked)

	due.touch("shop", start)
	due.touch("shop", start.Add(10*time.Millisecond))
	groups, _ := due.take(start.Add(20 * time.Millisecond))
	assert.Equal(t, []string{"shop"}, groups, "a group that changes all the time is not put off for ever")
}

func TestChangesEndWithTheirContextAndTellSeveralAsOne(t *testing.T) {
	script, client := serving(t, map[string]string{"/api": aggregated("/v1 pods"), "/apis": aggregated("apps/v1 deployments")})
	refreshed(t, client)
	changes := client.Changes(t.Context())
	script.answers["/apis"] = aggregated("apps/v1 statefulsets")
	refreshed(t, client)
	script.answers["/apis"] = aggregated("apps/v1 daemonsets")
	refreshed(t, client)
	var seen []string
	for change := range changes {
		if change.After != nil {
			seen = append(seen, "+"+change.After.GVR.Resource)
			continue
		}
		seen = append(seen, "-"+change.Before.GVR.Resource)
		break
	}
	assert.Equal(t, []string{"+daemonsets", "-deployments"}, seen)
}

func TestAServerThatEndsEveryWatchAtOnceIsAskedWithBreaks(t *testing.T) {
	const list = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`
	script, client := serving(t, map[string]string{
		"/api": aggregated("/v1 pods"), "/apis": aggregated("apps/v1 deployments"), definers[0]: list, definers[1]: list,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, client.Live(ctx), context.DeadlineExceeded)
	assert.Less(t, script.full.Load(), int32(20))
}

func TestErrorsOfVersionsAreComparedByTheirText(t *testing.T) {
	a := &Version{Err: errors.New("x")}
	assert.True(t, sameVersion(a, &Version{Err: errors.New("x")}))
	assert.False(t, sameVersion(a, &Version{}))
}
