package discovery_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

type cachedServer struct {
	*httptest.Server
	requests atomic.Int32
}

// serveCached serves documents by path, and 404 elsewhere.
func serveCached(t *testing.T, responses map[string]string) *cachedServer {
	t.Helper()
	server := &cachedServer{}
	server.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.requests.Add(1)
		body, ok := responses[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		contentType := "application/json"
		if strings.Contains(body, "APIGroupDiscoveryList") {
			contentType += ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// cachedServers are a current server, with stale groups and resources without a kind, and one before 1.26.
func cachedServers() map[string]map[string]string {
	return map[string]map[string]string{
		"aggregated": {
			"/api": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[
				{"version":"v1","freshness":"Current","resources":[
				 {"resource":"pods","responseKind":{"group":"","version":"v1","kind":"Pod"},"scope":"Namespaced","singularResource":"pod",
				  "verbs":["list","get"],"shortNames":["po"],"categories":["all"],"subresources":[
				   {"subresource":"exec","responseKind":{"group":"","version":"","kind":"PodExecOptions"},"verbs":["create"]},
				   {"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]}]},
				 {"resource":"ghosts","responseKind":null,"scope":"Cluster","singularResource":"","verbs":[],"subresources":[
				   {"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get"]}]}]}]}]}`,
			"/apis": `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
				{"metadata":{"name":"example.org"},"versions":[
				 {"version":"v2","freshness":"Stale"},
				 {"version":"v1","freshness":"Current","resources":[{"resource":"widgets","responseKind":{"group":"example.org","version":"v1","kind":"Widget"},
				  "scope":"Cluster","singularResource":"widget","verbs":["get"],"shortNames":["w","wd"]}]}]},
				{"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]},
				{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
				 {"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["get"]}]}]}]}`,
		},
		"group by group": {
			"/api": `{"kind":"APIVersions","versions":["v1"]}`,
			"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps",
				"versions":[{"groupVersion":"apps/v1","version":"v1"},{"groupVersion":"apps/v1beta1","version":"v1beta1"}],
				"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
			"/api/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[
				{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"],"shortNames":["po"],"categories":["all"],"storageVersionHash":"xPOwRZ+Yhw8="},
				{"name":"pods/eviction","singularName":"pod","namespaced":true,"group":"policy","version":"v1","kind":"Eviction","verbs":["create"]}]}`,
			"/apis/apps/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[
				{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["get"]}]}`,
			"/apis/apps/v1beta1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1beta1","resources":[
				{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["get"]}]}`,
		},
	}
}
