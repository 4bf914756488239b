package get_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/get"
)

// watchServer serves an empty list of config maps. The response to watch number n is written by respond.
func watchServer(t *testing.T, respond func(w http.ResponseWriter, number int64)) (url string, watches *atomic.Int64) {
	t.Helper()
	watches = &atomic.Int64{}
	responses := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
			{"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["get", "list", "watch"]}]}`,
		"/api/v1/namespaces/default/configmaps": `{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, "items": []}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") != "" { // as older servers respond
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`)
			return
		}
		if r.URL.Query().Get("watch") != "" {
			respond(w, watches.Add(1))
			return
		}
		response, found := responses[r.URL.Path]
		if !found {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, response)
	}))
	t.Cleanup(server.Close)
	return server.URL, watches
}

// watch runs get -w for a duration, as long as the command runs.
func watch(t *testing.T, url string, duration time.Duration) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	state := &command.State{Streams: command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, Connection: flags.NewConnection()}
	state.Connection.Kubeconfig = filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(state.Connection.Kubeconfig, []byte("{}"), 0o600))
	state.Connection.CacheDir = t.TempDir()
	root := command.Root(state, &cobra.Command{Use: "anyctl"}, get.Commands(state)...)
	root.SetArgs([]string{"get", "configmaps", "-w", "-o", "name", "--server", url})
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	err := root.ExecuteContext(ctx)
	state.Connection.Close()
	exit.Report(&errs, err)
	return out.String(), errs.String()
}

func TestGet_WatchBacksOff(t *testing.T) {
	url, watches := watchServer(t, func(http.ResponseWriter, int64) {}) // ends at once
	_, stderr := watch(t, url, 2*time.Second)
	assert.Empty(t, stderr)
	assert.Greater(t, watches.Load(), int64(1), "the watch is not resumed")
	assert.Less(t, watches.Load(), int64(9))
}

func TestGet_WatchResumesAfterFailures(t *testing.T) {
	url, _ := watchServer(t, func(w http.ResponseWriter, number int64) {
		switch number {
		case 1: // in the middle of an event
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"type": "ADDED"`)
		case 2:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "message": "restarting"}`)
		case 3:
			_, _ = io.WriteString(w, `{"type": "ADDED", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "late", "resourceVersion": "6"}}}`)
		}
	})
	stdout, stderr := watch(t, url, 4*time.Second)
	assert.Equal(t, "configmap/late\n", stdout)
	assert.Equal(t, 2, strings.Count(stderr, "Warning: the watch of configmaps is resumed: "), stderr)
	assert.Contains(t, stderr, "restarting")
}

func TestGet_WatchEndsWithRejection(t *testing.T) {
	url, watches := watchServer(t, func(w http.ResponseWriter, _ int64) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}`)
	})
	_, stderr := watch(t, url, time.Minute)
	require.Contains(t, stderr, "Forbidden")
	assert.Less(t, watches.Load(), int64(20))
}
