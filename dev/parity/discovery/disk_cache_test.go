package discovery_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/anykind/anykind/dev/parity/discoverytest"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/transport"
)

// TestDiskCache_WrittenByClientGo reads a cache that client-go wrote.
func TestDiskCache_WrittenByClientGo(t *testing.T) {
	for name, responses := range cachedServers() {
		t.Run(name, func(t *testing.T) {
			server := serveCached(t, responses)
			dir := t.TempDir()
			_, _, err := discoverytest.ClientGoCached(t, server.URL, dir).ServerGroupsAndResources()
			require.NoError(t, err)

			want := askedOf(t, server.URL)
			server.requests.Store(0)
			snapshot, err := cachedIn(t, server.URL, dir).Snapshot(t.Context())
			require.NoError(t, err)
			assert.Zero(t, server.requests.Load())
			assert.Equal(t, withoutStale(want.Groups), withoutNil(snapshot.Groups))
		})
	}
}

// TestDiskCache_ReadByClientGo writes a cache with anykind.
func TestDiskCache_ReadByClientGo(t *testing.T) {
	for name, responses := range cachedServers() {
		t.Run(name, func(t *testing.T) {
			server := serveCached(t, responses)
			dir := t.TempDir()
			wantGroups, wantLists, err := discoverytest.ClientGoCached(t, server.URL, t.TempDir()).ServerGroupsAndResources()
			require.NoError(t, err)
			_, err = cachedIn(t, server.URL, dir).Refresh(t.Context())
			require.NoError(t, err)

			server.requests.Store(0)
			cached := discoverytest.ClientGoCached(t, server.URL, dir)
			groups, lists, err := cached.ServerGroupsAndResources()
			require.NoError(t, err)
			assert.Equal(t, wantGroups, groups)
			assert.Equal(t, spelledOut(wantLists), spelledOut(lists))
			mapping, err := restmapper.NewDeferredDiscoveryRESTMapper(cached).RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
			require.NoError(t, err)
			assert.Equal(t, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, mapping.Resource)
			assert.Zero(t, server.requests.Load())
		})
	}
}

// TestDiskCache_EmptyListsAreNotCached checks that client-go finds no empty list in anykind's cache, as in its own.
func TestDiskCache_EmptyListsAreNotCached(t *testing.T) {
	responses := cachedServers()["group by group"]
	responses["/apis/apps/v1beta1"] = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1beta1","resources":[]}`
	server := serveCached(t, responses)
	dir := t.TempDir()
	asked, err := cachedIn(t, server.URL, dir).Refresh(t.Context())
	require.NoError(t, err)
	server.requests.Store(0)
	_, _, err = discoverytest.ClientGoCached(t, server.URL, dir).ServerGroupsAndResources()
	require.ErrorContains(t, err, "received empty response for: apps/v1beta1")
	assert.Positive(t, server.requests.Load())

	snapshot, err := cachedIn(t, server.URL, dir).Snapshot(t.Context())
	require.NoError(t, err)
	assert.Equal(t, withoutStale(asked.Groups), withoutNil(snapshot.Groups), "anykind remembers that there were none")
}

// cachedIn returns an anykind client with that cache folder.
func cachedIn(t *testing.T, server, dir string) *discovery.Client {
	t.Helper()
	conn, err := transport.Open(&transport.Config{Server: server})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return discovery.New(conn, &discovery.Options{CacheDir: dir})
}

func askedOf(t *testing.T, server string) *discovery.Snapshot {
	t.Helper()
	conn, err := transport.Open(&transport.Config{Server: server})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	snapshot, err := discovery.New(conn, nil).Snapshot(t.Context())
	require.NoError(t, err)
	return snapshot
}

// withoutStale returns what client-go caches.
func withoutStale(groups []discovery.Group) []discovery.Group {
	var healthy []discovery.Group
	for _, group := range groups {
		group.Versions = slices.DeleteFunc(slices.Clone(group.Versions), func(v discovery.Version) bool { return v.Stale })
		if len(group.Versions) > 0 {
			healthy = append(healthy, group)
		}
	}
	return withoutNil(healthy)
}

// withoutNil replaces nil verbs by an empty list.
func withoutNil(groups []discovery.Group) []discovery.Group {
	for _, group := range groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				if resource.Verbs == nil {
					resource.Verbs = []string{}
				}
			}
		}
	}
	return groups
}

// spelledOut sets the group and version that kinds inherit from their list.
func spelledOut(lists []*metav1.APIResourceList) []*metav1.APIResourceList {
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		list.TypeMeta = metav1.TypeMeta{} // only what was read from the disk has one
		for i := range list.APIResources {
			if entry := &list.APIResources[i]; entry.Version == "" {
				entry.Group = gv.Group
				entry.Version = gv.Version
			}
		}
	}
	return lists
}
