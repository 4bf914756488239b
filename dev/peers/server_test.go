package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serve starts a server whose world has a at 101 and 103, b at 102, and the deletion of b at 104.
func serve(t *testing.T) (s *server, url string) {
	t.Helper()
	w := newWorld()
	w.put("a", "b", "a")
	w.delete("b")
	s = newServer(w, configMaps)
	listener := httptest.NewServer(&front{servers: []*server{s}})
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	return s, listener.URL + configMaps.path
}

func get(t *testing.T, url string) io.Reader {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.Body
}

func TestServer_ListsOfStaleWatchCache(t *testing.T) {
	s, url := serve(t)
	s.set(func() { s.frontier = 102 })
	for query, parts := range map[string][]string{
		"":                             {`"resourceVersion":"104"`, `"a"`},
		"?resourceVersion=0&limit=500": {`"resourceVersion":"102"`, `"a"`, `"b"`},
		"?resourceVersion=102":         {`"resourceVersion":"102"`, `"b"`},
		"?resourceVersion=104":         {`"ResourceVersionTooLarge"`},
		"?resourceVersion=101&resourceVersionMatch=Exact": {`"resourceVersion":"101"`, `"a"`},
	} {
		body, err := io.ReadAll(get(t, url+query))
		require.NoError(t, err)
		for _, part := range parts {
			assert.Contains(t, string(body), part, query)
		}
		assert.Equal(t, strings.Contains(query, "102") || strings.Contains(query, "500"), strings.Contains(string(body), `"b"`), query)
	}
}

func TestServer_Watches(t *testing.T) {
	s, url := serve(t)
	s.set(func() {
		s.oldest = 102
		s.lost[104] = true
	})
	for query, want := range map[string]string{
		"?watch=1&resourceVersion=101":                        "ERROR Expired",
		"?watch=1&resourceVersion=102&allowWatchBookmarks=1":  "MODIFIED 103 BOOKMARK 104",
		"?watch=1&sendInitialEvents=true":                     "ADDED 103 ADDED 102 BOOKMARK initial-events-end",
		"?watch=1&sendInitialEvents=true&resourceVersion=103": "ADDED 103 ADDED 102 BOOKMARK initial-events-end",
	} {
		lines := bufio.NewScanner(get(t, url+query))
		for expected := strings.Fields(want); len(expected) > 0; {
			require.True(t, lines.Scan(), query)
			assert.Contains(t, lines.Text(), expected[0], query)
			assert.Contains(t, lines.Text(), expected[1], query)
			expected = expected[2:]
		}
	}
}
