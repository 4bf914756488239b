package bench_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/transport"
)

// served returns an aggregated discovery document with that number of resources, ten to a group.
func served(b *testing.B, resources int) string {
	b.Helper()
	var groups []string
	for g := range resources / 10 {
		var list []string
		for r := range 10 {
			name := fmt.Sprintf("thing%dx%d", g, r)
			kind := fmt.Sprintf(`"responseKind":{"group":"g%d.example.com","version":"v1","kind":"T%s"}`, g, name[1:])
			list = append(list, fmt.Sprintf(`{"resource":"%ss",%s,"scope":"Namespaced","singularResource":%q,"shortNames":["t%dx%d"],"categories":["all"],
				"verbs":["delete","deletecollection","get","list","patch","create","update","watch"],
				"subresources":[{"subresource":"status",%s,"verbs":["get","patch","update"]}]}`, name, kind, name, g, r, kind))
		}
		groups = append(groups, fmt.Sprintf(`{"metadata":{"name":"g%d.example.com","creationTimestamp":null},"versions":[{"version":"v1","freshness":"Current","resources":[%s]}]}`,
			g, strings.Join(list, ",")))
	}
	const form = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[%s]}`
	responses := map[string][]byte{"/api": fmt.Appendf(nil, form, ""), "/apis": fmt.Appendf(nil, form, strings.Join(groups, ","))}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(responses[r.URL.Path])
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// BenchmarkDiscovery runs discovery on an open connection to a server that responds at once.
func BenchmarkDiscovery(b *testing.B) {
	for _, resources := range []int{70, 2000} {
		url := served(b, resources)
		conn, err := transport.Open(&transport.Config{Server: url})
		require.NoError(b, err)
		b.Cleanup(conn.Close)
		warm := discovery.New(conn, nil)
		other, err := clientgo.NewDiscoveryClientForConfig(&rest.Config{Host: url, QPS: -1})
		require.NoError(b, err)
		for name, ask := range map[string]func() (int, error){
			"cold/anykind": func() (int, error) {
				snapshot, err := discovery.New(conn, nil).Refresh(b.Context())
				return len(snapshot.Groups), err
			},
			"warm/anykind": func() (int, error) {
				snapshot, err := warm.Refresh(b.Context())
				return len(snapshot.Groups), err
			},
			"cold/client-go": func() (int, error) {
				groups, _, _, err := other.GroupsAndMaybeResources()
				return len(groups.Groups), err
			},
		} {
			b.Run(fmt.Sprintf("%d/%s", resources, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					groups, err := ask()
					if err != nil || groups != resources/10 {
						b.Fatal(groups, err)
					}
				}
			})
		}
	}
}
