package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

func TestRefresh_UnchangedReturnsSameSnapshot(t *testing.T) {
	var whole atomic.Int32
	server := newServer()
	client := New(scripted.Connect(t, server, &transport.Options{OnAttempt: func(_ context.Context, attempt transport.Attempt) {
		if attempt.StatusCode == http.StatusOK {
			whole.Add(1)
		}
	}}), nil)
	first := refresh(t, client)
	assert.EqualValues(t, 2, whole.Load())
	assert.Same(t, first, refresh(t, client))
	assert.EqualValues(t, 2, whole.Load())

	server.serve(deployments + jobs)
	second := refresh(t, client)
	assert.EqualValues(t, 3, whole.Load(), "only what changed is sent again")
	assert.Len(t, second.Groups, 3)
	assert.Len(t, first.Groups, 2, "a snapshot that was handed out stays as it is")
}

func TestSnapshot_RemovedUntilServedAgain(t *testing.T) {
	script, client := serving(t, deployments+jobs)
	refresh(t, client)
	script.serve(deployments)
	removed := refresh(t, client).Removed
	require.Len(t, removed, 1)
	assert.Equal(t, "batch/v1, Resource=jobs", removed[0].Resource.GVR.String())
	script.Handle("GET /api", scripted.New("/v1 services\n").ServeHTTP)
	removed = refresh(t, client).Removed
	require.Len(t, removed, 2)
	assert.Equal(t, "pods", removed[0].Resource.GVR.Resource, "the latest first")
	script.serve(deployments + jobs)
	removed = refresh(t, client).Removed
	require.Len(t, removed, 1)
}

func TestRefresh_StaleVersionKeepsLastResources(t *testing.T) {
	script, client := serving(t, "metrics/v1 nodes\n")
	refresh(t, client)
	script.serve("stale metrics/v1\n")
	snapshot := refresh(t, client)
	version := snapshot.Groups[1].Versions[0]
	assert.False(t, version.Healthy())
	require.Len(t, version.Resources, 1)
	assert.Equal(t, "nodes", version.Resources[0].GVR.Resource)
	assert.Empty(t, snapshot.Removed)
}

func TestRefresh_FailedVersionsKeepLastResources(t *testing.T) {
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
	synctest.Test(t, func(t *testing.T) {
		script, client := serving(t, "")
		script.serveJSON(map[string]string{
			"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/api/v1": resources("v1", "pods"),
			"/apis": groups("apps", "metrics", "denied"), "/apis/apps/v1": resources("apps/v1", "deployments"),
			"/apis/metrics/v1": resources("metrics/v1", "nodes"), "/apis/denied/v1": resources("denied/v1", "secrets"),
		})
		first := refresh(t, client)
		assert.Same(t, first, refresh(t, client), "an older server gives no ETag, but says the same")

		script.Handle("GET /apis/metrics/v1", scripted.Hang)
		script.Handle("GET /apis/denied/v1", scripted.Status(403, ""))
		script.Handle("GET /apis/apps/v1", scripted.JSON(resources("apps/v1", "daemonsets")))
		snapshot := refresh(t, client)
		for _, name := range []string{"metrics", "denied"} {
			version := versionOf(snapshot, name)
			require.Error(t, version.Err)
			assert.Len(t, version.Resources, 1)
		}
		assert.NotNil(t, snapshot.resourcesByGVR()[schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}])
		require.Len(t, snapshot.Removed, 1)
		assert.Equal(t, "deployments", snapshot.Removed[0].Resource.GVR.Resource)
	})
}

func TestRefresh_OutageKeepsSnapshot(t *testing.T) {
	script, client := serving(t, deployments)
	first := refresh(t, client)
	script.Handle("GET /apis", scripted.Status(503, ""))
	_, err := client.Refresh(t.Context())
	require.Error(t, err)
	latest, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	assert.Same(t, first, latest)
}

func TestRefreshGroup_ReplacesGroup(t *testing.T) {
	script, client := serving(t, deployments+carts)
	refresh(t, client)
	list := `{"kind":"APIResourceList","groupVersion":"shop/v1","resources":[
		{"name":"tills","kind":"Till","verbs":["get"]},{"name":"carts","kind":"Cart","namespaced":true,"verbs":["get"]}]}`
	script.Handle("GET /apis/shop", scripted.JSON(`{"kind":"APIGroup","name":"shop","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}`))
	script.Handle("GET /apis/shop/v1", scripted.JSON(list))
	changes := difference(refresh(t, client), after(t, client, "shop"))
	require.Len(t, changes, 1)
	assert.Equal(t, "tills", changes[0].New.GVR.Resource, "the cart is the same in both forms of discovery")

	script.Handle("GET /apis/shop")
	assert.Len(t, after(t, client, "shop").Groups, 2)
	script.Handle("GET /apis/shop", scripted.Status(500, ""))
	require.Error(t, client.refreshGroup(t.Context(), "shop"))
	script.Handle("GET /apis/new", scripted.JSON(`{"kind":"APIGroup","name":"new","versions":[{"version":"v1"}]}`))
	script.Handle("GET /apis/new/v1", scripted.JSON(strings.ReplaceAll(list, "shop", "new")))
	assert.Len(t, after(t, client, "new").Groups, 3)
	// The whole, which knows nothing of new, is built anew and not from what it said before.
	assert.Len(t, refresh(t, client).Groups, 3)
	assert.Equal(t, "shop", refresh(t, client).Groups[2].Name)
}

// delayed responds after a second as a server did when it was asked.
func delayed(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		handle(w, r)
	}
}

func TestRefresh_KeepsNewerResponseOfGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.Handle("GET /apis/shop", scripted.JSON(`{"kind":"APIGroup","name":"shop","versions":[{"version":"v1"}]}`))
		server.Handle("GET /apis/shop/v1", scripted.JSON(`{"kind":"APIResourceList","resources":[{"name":"carts","kind":"Cart"}]}`))
		client := New(scripted.Connect(t, server, nil), nil)
		refresh(t, client)
		server.Handle("GET /apis", delayed(scripted.New(deployments).ServeHTTP))
		var whole sync.WaitGroup
		whole.Go(func() { refresh(t, client) })
		time.Sleep(time.Second / 2)
		require.NoError(t, client.refreshGroup(t.Context(), "shop"))
		whole.Wait()
		assert.Contains(t, groupsByName(client.Latest()), "shop", "all was requested before")
		time.Sleep(time.Second)
		assert.NotContains(t, groupsByName(refresh(t, client)), "shop")
	})
}

// TestRefresh_KeptGroupIsNotWritten reads a published snapshot while a merge keeps one of its groups.
func TestRefresh_KeptGroupIsNotWritten(t *testing.T) {
	_, client := serving(t, "stale shop/v1\n")
	published := refresh(t, client)
	client.groupRequestedAt["shop"] = published.TakenAt.Add(time.Hour)
	var reader sync.WaitGroup
	reader.Go(func() {
		for range published.Resources() {
		}
	})
	merged := client.publishAll(&Snapshot{TakenAt: published.TakenAt.Add(time.Second), Aggregated: true, Groups: []Group{{Name: "other"}}})
	reader.Wait()
	require.NotSame(t, published, merged)
	kept := groupNamed(merged.Groups, "shop")
	before := groupNamed(published.Groups, "shop")
	require.NotNil(t, kept)
	assert.NotSame(t, &before.Versions[0], &kept.Versions[0])
}

func TestRefreshGroup_LosesToNewerWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		client := New(scripted.Connect(t, server, nil), nil)
		refresh(t, client)
		server.Handle("GET /apis/shop", delayed(scripted.NotServed))
		var group sync.WaitGroup
		group.Go(func() { assert.NoError(t, client.refreshGroup(t.Context(), "shop")) })
		time.Sleep(time.Second / 2)
		server.serve(carts)
		refresh(t, client)
		group.Wait()
		assert.Contains(t, groupsByName(client.Latest()), "shop")
	})
}

func after(t *testing.T, client *Client, group string) *Snapshot {
	t.Helper()
	require.NoError(t, client.refreshGroup(t.Context(), group))
	latest := client.Latest()
	return latest
}

func TestClient_ChangesOfSlowConsumerAreCombined(t *testing.T) {
	script, client := serving(t, deployments)
	refresh(t, client)
	changes := client.Changes(t.Context(), client.Latest())
	script.serve(statefulSets)
	refresh(t, client)
	script.serve(daemonSets)
	refresh(t, client)
	var seen []string
	for change := range changes {
		if change.New != nil {
			seen = append(seen, "+"+change.New.GVR.Resource)
			continue
		}
		seen = append(seen, "-"+change.Old.GVR.Resource)
		break
	}
	assert.Equal(t, []string{"+daemonsets", "-deployments"}, seen)
}

func TestClient_ChangesBeginWithAllResources(t *testing.T) {
	script, client := serving(t, deployments)
	ctx, cancel := context.WithCancel(t.Context())
	changes := client.Changes(ctx, nil)
	names := func(limit int) (seen []string) {
		for change := range changes {
			assert.Nil(t, change.Old)
			if seen = append(seen, change.New.GVR.Resource); len(seen) == limit {
				break
			}
		}
		return seen
	}
	refresh(t, client) // the first snapshot comes after the call
	assert.Equal(t, []string{"pods", "deployments"}, names(2))
	script.serve(deployments + statefulSets)
	refresh(t, client)
	assert.Equal(t, []string{"pods", "deployments", "statefulsets"}, names(3), "a second loop begins again")
	cancel()
	assert.Empty(t, names(4))
}

func TestEqualVersions_ComparesErrorText(t *testing.T) {
	a := Version{Err: errors.New("x")}
	assert.True(t, equalVersions(a, Version{Err: errors.New("x")}))
	assert.False(t, equalVersions(a, Version{}))
}

func TestEqualResources_IgnoresOrder(t *testing.T) {
	of := func(names ...string) *Resource {
		r := &Resource{Verbs: names, ShortNames: names, Categories: names}
		for _, name := range names {
			r.Subresources = append(r.Subresources, Subresource{Name: name, Verbs: names})
		}
		return r
	}
	assert.True(t, equalResources(of("a", "b"), of("b", "a")))
	for name, change := range map[string]func(*Resource){
		"verbs":       func(r *Resource) { r.Verbs = []string{"c", "a"} },
		"short names": func(r *Resource) { r.ShortNames = []string{"c", "a"} },
		"categories":  func(r *Resource) { r.Categories = []string{"c", "a"} },
		"subresource": func(r *Resource) { r.Subresources[0].Verbs = []string{"c", "a"} },
		"hash":        func(r *Resource) { r.StorageVersionHash = "x" },
	} {
		other := of("b", "a")
		change(other)
		assert.Equal(t, name == "hash", equalResources(of("a", "b"), other), name)
	}
}
