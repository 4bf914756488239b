// Package discoverytest serves discovery documents, and has the mappers of anykind and client-go over them.
package discoverytest

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

// Server serves aggregated discovery and counts requests and bytes.
type Server struct {
	*httptest.Server
	Requests, Bytes atomic.Int64
}

// NewServer serves the groups until the test ends.
func NewServer(tb testing.TB, groups []apidiscovery.APIGroupDiscovery) *Server {
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
	server := &Server{}
	server.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Requests.Add(1)
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
		server.Bytes.Add(int64(len(body)))
		_, _ = w.Write(body)
	}))
	tb.Cleanup(server.Close)
	return server
}

// Catalog collects resources into groups and versions, in the order of Add.
type Catalog struct {
	Groups []apidiscovery.APIGroupDiscovery
	count  int
}

// Add adds a resource to a version of a group.
func (c *Catalog) Add(group, version string, stale bool, resource *apidiscovery.APIResourceDiscovery) {
	c.count++
	resource.ResponseKind.Group = group
	resource.ResponseKind.Version = version
	g := -1
	for i := range c.Groups {
		if c.Groups[i].Name == group {
			g = i
		}
	}
	if g < 0 {
		g = len(c.Groups)
		c.Groups = append(c.Groups, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}})
	}
	versions := c.Groups[g].Versions
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
	c.Groups[g].Versions = versions
}

// AddBuiltIn adds the resources of a real server.
func (c *Catalog) AddBuiltIn() {
	list := func(field string) []string {
		if field == "-" {
			return nil
		}
		return strings.Split(field, ",")
	}
	for line := range strings.Lines(strings.TrimSpace(builtIn)) {
		f := strings.Fields(line)
		group, version, _ := strings.Cut(f[0], "/")
		resource := NewResource(f[1], f[2], f[3], f[4] == "N", list(f[5]), list(f[6]))
		if f[7] != "-" {
			resource.Verbs = list(f[7])
		}
		c.Add(group, version, false, resource)
	}
}

// NewResource returns a resource with a status subresource.
func NewResource(plural, singular, kind string, namespaced bool, short, categories []string) *apidiscovery.APIResourceDiscovery {
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
