package bench_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// storedVerbs are the verbs of stored resources.
var storedVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// discoveryServer serves aggregated discovery and counts requests and bytes.
type discoveryServer struct {
	*httptest.Server
	requests, bytes atomic.Int64
}

func serveDiscovery(tb testing.TB, groups []apidiscovery.APIGroupDiscovery) *discoveryServer {
	tb.Helper()
	core := apidiscovery.APIGroupDiscoveryList{}
	named := apidiscovery.APIGroupDiscoveryList{}
	for _, group := range groups {
		list := &named
		if group.Name == "" {
			list = &core
		}
		list.Items = append(list.Items, group)
	}
	bodies := map[string][]byte{}
	for path, list := range map[string]*apidiscovery.APIGroupDiscoveryList{"/api": &core, "/apis": &named} {
		list.TypeMeta = metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}
		body, err := json.Marshal(list)
		require.NoError(tb, err)
		bodies[path] = body
	}
	server := &discoveryServer{}
	server.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.requests.Add(1)
		body, ok := bodies[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		sum := fnv.New64()
		_, _ = sum.Write(body)
		etag := fmt.Sprintf(`"%X"`, sum.Sum64())
		w.Header().Set("Etag", etag)
		w.Header().Set("Vary", "Accept")
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		server.bytes.Add(int64(len(body)))
		_, _ = w.Write(body)
	}))
	tb.Cleanup(server.Close)
	return server
}

// catalogue collects resources into groups and versions, in the order in which they are added.
type catalogue struct {
	groups []apidiscovery.APIGroupDiscovery
	count  int
}

func (c *catalogue) add(group, version string, stale bool, resource *apidiscovery.APIResourceDiscovery) {
	c.count++
	resource.ResponseKind.Group = group
	resource.ResponseKind.Version = version
	g := -1
	for i := range c.groups {
		if c.groups[i].Name == group {
			g = i
		}
	}
	if g < 0 {
		g = len(c.groups)
		c.groups = append(c.groups, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}})
	}
	versions := c.groups[g].Versions
	v := -1
	for i := range versions {
		if versions[i].Version == version {
			v = i
		}
	}
	if v < 0 {
		v = len(versions)
		freshness := apidiscovery.DiscoveryFreshnessCurrent
		if stale {
			freshness = apidiscovery.DiscoveryFreshnessStale
		}
		versions = append(versions, apidiscovery.APIVersionDiscovery{Version: version, Freshness: freshness})
	}
	versions[v].Resources = append(versions[v].Resources, *resource)
	c.groups[g].Versions = versions
}

// addBuiltIn adds the resources of a real server.
func (c *catalogue) addBuiltIn() {
	list := func(field string) []string {
		if field == "-" {
			return nil
		}
		return strings.Split(field, ",")
	}
	for line := range strings.Lines(strings.TrimSpace(builtIn)) {
		f := strings.Fields(line)
		group, version, _ := strings.Cut(f[0], "/")
		resource := newResource(f[1], f[2], f[3], f[4] == "N", list(f[5]), list(f[6]))
		if f[7] != "-" {
			resource.Verbs = list(f[7])
		}
		c.add(group, version, false, resource)
	}
}

func newResource(plural, singular, kind string, namespaced bool, short, categories []string) *apidiscovery.APIResourceDiscovery {
	scope := apidiscovery.ScopeCluster
	if namespaced {
		scope = apidiscovery.ScopeNamespace
	}
	return &apidiscovery.APIResourceDiscovery{
		Resource: plural, SingularResource: singular, Scope: scope, ShortNames: short, Categories: categories,
		ResponseKind: &metav1.GroupVersionKind{Kind: kind}, Verbs: storedVerbs,
		Subresources: []apidiscovery.APISubresourceDiscovery{{
			Subresource: "status", ResponseKind: &metav1.GroupVersionKind{Kind: kind}, Verbs: []string{"get", "patch", "update"},
		}},
	}
}
