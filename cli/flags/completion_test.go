package flags_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostileNames have control characters for the shell's terminal, or separators of candidates.
var hostileNames = []string{"a\x1b[2J", "a\u009b", "a\nb", "a\rb", "a\tdescription", "a\u202e", "a\u2028b"}

// hostileServer serves config maps with the names, also as labels and fields, beside "apple" and "äpfel".
func hostileServer(t *testing.T) *httptest.Server {
	t.Helper()
	rows := []any{}
	fields := map[string]any{}
	for _, name := range append([]string{"apple", "äpfel"}, hostileNames...) {
		rows = append(rows, map[string]any{"cells": []any{name}, "object": nil})
		fields[name] = "x"
	}
	responses := map[string]any{
		"/api":  map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"/apis": map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"/api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{map[string]any{
			"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": []any{"get", "list"},
		}}},
		"/api/v1/namespaces/front/configmaps": map[string]any{
			"kind": "ConfigMapList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"},
			"items": []any{map[string]any{"metadata": map[string]any{"name": "x", "labels": fields}, "data": fields}},
		},
	}
	table := map[string]any{
		"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": "1"}, "rows": rows,
		"columnDefinitions": []any{map[string]any{"name": "Name", "type": "string", "format": "name"}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, found := responses[r.URL.Path]
		if !found {
			http.NotFound(w, r)
			return
		}
		if strings.Contains(r.Header.Get("Accept"), "as=Table") {
			response = table
		}
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(response))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestConnection_CompletesWithoutControls(t *testing.T) {
	c := connection(t, "--server="+hostileServer(t).URL)
	defer c.Close()
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	for name, candidates := range map[string]struct {
		complete cobra.CompletionFunc
		args     []string
		prefix   string
		want     []cobra.Completion
	}{
		"objects": {c.CompleteTargets, []string{"configmaps"}, "", []cobra.Completion{"apple", "äpfel"}},
		"pairs":   {c.CompleteTargets, nil, "configmaps/a", []cobra.Completion{"configmaps/apple"}},
		"types":   {c.CompleteTargets, nil, "", []cobra.Completion{"configmaps"}},
		"labels":  {c.CompleteLabels, []string{"configmaps"}, "", []cobra.Completion{"apple", "äpfel"}},
		"fields":  {c.CompleteFields, []string{"configmaps"}, ".data.", []cobra.Completion{".data.apple\tstring", ".data.äpfel\tstring"}},
	} {
		got, _ := candidates.complete(cmd, candidates.args, candidates.prefix)
		assert.Equal(t, candidates.want, got, name)
	}
}

func TestConnection_CompletesContextsWithoutControls(t *testing.T) {
	c := connection(t)
	const contexts = `{contexts: [{name: "a\nb", context: {}}, {name: "a\x1b[2J", context: {}}, {name: "apple", context: {}}]}`
	require.NoError(t, os.WriteFile(os.Getenv("KUBECONFIG"), []byte(contexts), 0o600))
	names, _ := c.CompleteContexts(&cobra.Command{}, nil, "a")
	assert.Equal(t, []cobra.Completion{"apple"}, names)
}
