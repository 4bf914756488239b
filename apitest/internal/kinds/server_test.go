package kinds

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/transport"
)

// realServer is the sandbox's API server.
type realServer struct{ conn *transport.Conn }

func connect(t *testing.T) *realServer {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return &realServer{conn}
}

func (s *realServer) send(ctx context.Context, method, path, accept, body string) (string, error) {
	req := &transport.Request{Method: method, Path: path, Header: http.Header{}}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if body != "" {
		req.Body = []byte(body)
		req.Header.Set("Content-Type", "application/json")
	}
	response, err := s.conn.Do(ctx, req)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func (s *realServer) get(t *testing.T, path, accept string) string {
	t.Helper()
	text, err := s.send(t.Context(), http.MethodGet, path, accept, "")
	require.NoError(t, err)
	return text
}

// waitForGroups waits until the server has the groups of a registry and no others: it removes definitions that earlier tests
// deleted, and serves new ones, some time later.
func (s *realServer) waitForGroups(t *testing.T, registry *Registry) {
	t.Helper()
	names := func(text string) (all []string) {
		var groups metav1.APIGroupList
		require.NoError(t, json.Unmarshal([]byte(text), &groups))
		for _, group := range groups.Groups {
			all = append(all, group.Name)
		}
		slices.Sort(all)
		return all
	}
	want := names(registry.getText(t, "/apis", ""))
	var got []string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if got = names(s.get(t, "/apis", "")); slices.Equal(want, got) {
			return
		}
	}
	require.Equal(t, want, got, "groups")
}

// define creates definitions of the corpus on the server, and returns a registry with the same definitions.
func (s *realServer) define(t *testing.T, count int) *Registry {
	t.Helper()
	cluster.Define(t, func(ctx context.Context, method, path, body string) (string, error) {
		accept := ""
		if method == http.MethodGet {
			accept = aggregatedType
		}
		return s.send(ctx, method, path, accept, body)
	}, corpus.Definitions(t, count))
	registry := New(nil)
	var list struct{ Items []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(s.get(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "")), &list))
	require.Len(t, list.Items, count)
	for _, definition := range list.Items {
		require.NoError(t, registry.SetDefinition(withIntegers(definition).(map[string]any)))
	}
	return registry
}

// withIntegers returns a decoded document with int64 for whole numbers, as apimachinery decodes it.
func withIntegers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for k, v := range value {
			value[k] = withIntegers(v)
		}
	case []any:
		for i, v := range value {
			value[i] = withIntegers(v)
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}

// get returns the response of a registry.
func (r *Registry) get(t *testing.T, path, accept string) *http.Response {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, path, nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	recorder := httptest.NewRecorder()
	r.ServeHTTP(recorder, req)
	return recorder.Result()
}

func (r *Registry) getText(t *testing.T, path, accept string) string {
	t.Helper()
	response := r.get(t, path, accept)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, text)
	return string(text)
}
