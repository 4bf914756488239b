package apitest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest"
)

// reply is a response whose body has been read.
type reply struct {
	code   int
	header http.Header
	text   string
	body   map[string]any // nil if the body is no JSON
}

func (r reply) message() string { text, _ := r.body["message"].(string); return text }

func (r reply) metadata() map[string]any { m, _ := r.body["metadata"].(map[string]any); return m }

// names returns the names of a list's items.
func (r reply) names() []string {
	items, _ := r.body["items"].([]any)
	names := []string{}
	for _, item := range items {
		obj, _ := item.(map[string]any)
		metadata, _ := obj["metadata"].(map[string]any)
		names = append(names, fmt.Sprint(metadata["name"]))
	}
	return names
}

// do sends a request with headers given as "Name: value".
func do(t testing.TB, server *apitest.Server, method, path, body string, headers ...string) reply {
	t.Helper()
	response, err := roundTrip(t, server, method, path, body, headers...)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	r := reply{code: response.StatusCode, header: response.Header, text: string(data)}
	_ = json.Unmarshal(data, &r.body)
	return r
}

func roundTrip(t testing.TB, server *apitest.Server, method, path, body string, headers ...string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
	}
	return server.HTTPClient().Do(req)
}

func createConfigMaps(t testing.TB, server *apitest.Server, names ...string) {
	t.Helper()
	for _, name := range names {
		r := do(t, server, "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"`+name+`","labels":{"name":"`+name+`"}}}`)
		require.Equal(t, http.StatusCreated, r.code, r.text)
	}
}

// watchLines returns a function that reads the next event of a watch: "ADDED name", "BOOKMARK", "ERROR 410".
func watchLines(t testing.TB, server *apitest.Server, path string) (next func() string, stop func()) {
	t.Helper()
	response, err := roundTrip(t, server, "GET", path, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	lines := bufio.NewScanner(response.Body)
	next = func() string {
		if !lines.Scan() {
			return "end"
		}
		var event struct {
			Type   string
			Object struct {
				Metadata struct {
					Name        string
					Annotations map[string]string
				}
				Code int
			}
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &event))
		switch {
		case event.Type == "ERROR":
			return fmt.Sprint("ERROR ", event.Object.Code)
		case event.Object.Metadata.Annotations["k8s.io/initial-events-end"] != "":
			return event.Type + " initial"
		case event.Type == "BOOKMARK":
			return event.Type
		}
		return event.Type + " " + event.Object.Metadata.Name
	}
	return next, func() { _ = response.Body.Close() }
}
