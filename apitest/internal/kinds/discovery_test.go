package kinds

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/testing/race"
)

func TestServeHTTP_DocumentsEqualServer(t *testing.T) {
	race.Skip(t)
	server := connect(t)
	server.waitForGroups(t, New(nil))
	t.Run("built-in", func(t *testing.T) {
		compareDiscovery(t, server, New(nil))
		compareOpenAPI(t, server, New(nil), true)
	})
	t.Run("definitions", func(t *testing.T) {
		registry := server.define(t, 100)
		server.waitForGroups(t, registry)
		compareDiscovery(t, server, registry)
		compareOpenAPI(t, server, registry, false)
	})
}

func compareDiscovery(t *testing.T, server *realServer, registry *Registry) {
	t.Helper()
	for _, path := range []string{"/api", "/apis"} {
		require.JSONEq(t, server.get(t, path, aggregatedType), registry.getText(t, path, aggregatedType))
	}
	assert.JSONEq(t, server.get(t, "/version", ""), registry.getText(t, "/version", ""))
	want := server.get(t, "/apis", "")
	require.JSONEq(t, want, registry.getText(t, "/apis", ""))

	paths := []string{"/api/v1"}
	var groups metav1.APIGroupList
	require.NoError(t, json.Unmarshal([]byte(want), &groups))
	for _, group := range groups.Groups {
		paths = append(paths, "/apis/"+group.Name)
		for _, v := range group.Versions {
			paths = append(paths, "/apis/"+v.GroupVersion)
		}
	}
	for _, path := range paths {
		want := server.get(t, path, "")
		got := registry.getText(t, path, "")
		if strings.Count(path, "/") == 3 {
			want = sortResources(t, want)
			got = sortResources(t, got)
		}
		assert.JSONEq(t, want, got, path)
	}
	t.Logf("%d documents", len(paths)+5)
}

// sortResources sorts the resources of legacy discovery, where the real server has CRDs in no order.
func sortResources(t *testing.T, text string) string {
	t.Helper()
	var list metav1.APIResourceList
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	sorted, err := json.Marshal(list)
	require.NoError(t, err)
	return string(sorted)
}

func TestServeHTTP_NegotiatesAsServer(t *testing.T) {
	server := connect(t)
	registry := New(nil)
	for _, accept := range []string{
		"", "*/*", "application/json", "application/yaml", "text/html", aggregatedType,
		strings.ReplaceAll(aggregatedType, "v2", "v2beta1"), strings.ReplaceAll(aggregatedType, "v2", "v9"),
		aggregatedType + ",application/json", strings.ReplaceAll(aggregatedType, "v2", "v2beta1") + ",application/json",
		"application/json;q=0.2,application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io",
	} {
		for _, path := range []string{"/apis", "/apis/apps/v1", "/version"} {
			want := server.negotiated(t, path, accept)
			response := registry.get(t, path, accept)
			require.NoError(t, response.Body.Close())
			got := []any{response.StatusCode, response.Header.Get("Content-Type"), response.Header.Get("Cache-Control"), response.Header.Get("Vary"), response.Header.Get("ETag") != ""}
			assert.Equal(t, want, got, "%s %s", path, accept)
		}
	}
}

// negotiated returns the status and the headers that depend on Accept.
func (s *realServer) negotiated(t *testing.T, path, accept string) []any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.conn.Server()+path, nil)
	require.NoError(t, err)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	response, err := s.conn.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return []any{response.StatusCode, response.Header.Get("Content-Type"), response.Header.Get("Cache-Control"), response.Header.Get("Vary"), response.Header.Get("ETag") != ""}
}

func TestServeHTTP_NotModified(t *testing.T) {
	registry := New(nil)
	first := registry.get(t, "/apis", aggregatedType)
	require.NoError(t, first.Body.Close())
	etag := first.Header.Get("ETag")
	require.NotEmpty(t, etag)

	again := registry.getIfChanged(t, "/apis", etag)
	assert.Equal(t, http.StatusNotModified, again)
	require.NoError(t, registry.SetDefinition(widgets("v1")))
	assert.Equal(t, http.StatusOK, registry.getIfChanged(t, "/apis", etag))
	registry.RemoveDefinition("widgets.example.com")
	assert.Equal(t, http.StatusNotModified, registry.getIfChanged(t, "/apis", etag))
}
