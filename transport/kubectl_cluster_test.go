package transport_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

// send makes a JSON request and decodes the response.
func send(t *testing.T, conn *transport.Conn, method, path, contentType, body string) (map[string]any, error) {
	t.Helper()
	request := &transport.Request{Method: method, Path: path, Header: http.Header{}}
	if body != "" {
		request.Body = []byte(body)
		request.Header.Set("Content-Type", contentType)
	}
	response, err := conn.Do(t.Context(), request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var object map[string]any
	require.NoError(t, json.NewDecoder(response.Body).Decode(&object))
	return object, nil
}

func TestOpenKubectl_ReadsWritesWatches(t *testing.T) {
	cluster.KubectlOnPath(t)
	conn, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Args: []string{"--kubeconfig", cluster.Kubeconfig(t)}})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	assert.Equal(t, "default", conn.Namespace())

	const collection, merge = "/api/v1/namespaces/default/configmaps", "application/merge-patch+json"
	watch, err := conn.Do(t.Context(), &transport.Request{Path: collection + "?watch=true&fieldSelector=metadata.name%3Dby-kubectl"})
	require.NoError(t, err)
	defer watch.Body.Close()
	events := bufio.NewReader(watch.Body)
	expect := func(kind string) {
		line, err := events.ReadBytes('\n')
		require.NoError(t, err)
		var event struct{ Type string }
		require.NoError(t, json.Unmarshal(line, &event))
		assert.Equal(t, kind, event.Type)
	}

	_, err = send(t, conn, http.MethodPost, collection, "application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"by-kubectl"},"data":{"a":"1"}}`)
	require.NoError(t, err)
	expect("ADDED")
	patched, err := send(t, conn, http.MethodPatch, collection+"/by-kubectl", merge, `{"data":{"a":"2"}}`)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "2"}, patched["data"])
	expect("MODIFIED")
	read, err := send(t, conn, http.MethodGet, collection+"/by-kubectl", "", "")
	require.NoError(t, err)
	read["data"] = map[string]any{"a": "3"}
	changed, err := json.Marshal(read)
	require.NoError(t, err)
	_, err = send(t, conn, http.MethodPut, collection+"/by-kubectl", "application/json", string(changed))
	require.NoError(t, err)
	expect("MODIFIED")
	_, err = send(t, conn, http.MethodDelete, collection+"/by-kubectl", "", "")
	require.NoError(t, err)
	expect("DELETED")
	_, err = send(t, conn, http.MethodGet, collection+"/by-kubectl", "", "")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestOpenKubectl_Context(t *testing.T) {
	cluster.KubectlOnPath(t)
	conn, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{
		Args: []string{"--kubeconfig", cluster.Kubeconfig(t), "--context", "limited"},
	})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = send(t, conn, http.MethodGet, "/api/v1/secrets", "", "")
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `"limited"`)
}

func TestOpenKubectl_StartErrors(t *testing.T) {
	_, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Command: filepath.Join(t.TempDir(), "no-kubectl")})
	require.ErrorContains(t, err, "no-kubectl")

	cluster.KubectlOnPath(t)
	_, err = transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Args: []string{"--kubeconfig", cluster.Kubeconfig(t), "--context", "typo"}})
	require.ErrorContains(t, err, `context "typo" does not exist`)
}

func TestOpenKubectl_RequestsAfterExit(t *testing.T) {
	cluster.KubectlOnPath(t)
	conn, err := transport.OpenKubectl(t.Context(), &transport.KubectlOptions{Args: []string{"--kubeconfig", cluster.Kubeconfig(t)}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := conn.Do(ctx, &transport.Request{Path: "/api/v1/namespaces?watch=true"})
	require.NoError(t, err)
	defer watch.Body.Close()

	conn.Close()
	_, err = io.Copy(io.Discard, watch.Body)
	require.Error(t, err)
	_, err = conn.Do(ctx, &transport.Request{Path: "/version"})
	require.ErrorContains(t, err, "has exited")
}
