package discovery_test

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/sandboxtest"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	services    = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// send makes a JSON request that must succeed.
func send(ctx context.Context, t *testing.T, conn *transport.Conn, method, path, body string) {
	t.Helper()
	contentType := "application/json"
	if method == http.MethodPatch {
		contentType = "application/merge-patch+json"
	}
	response, err := conn.Do(ctx, &transport.Request{
		Method: method, Path: path, Body: []byte(body), Header: http.Header{"Content-Type": {contentType}},
	})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
}

// define creates a definition of gizmos in a group; the caller removes it.
func define(t *testing.T, conn *transport.Conn, group string) {
	t.Helper()
	send(t.Context(), t, conn, http.MethodPost, definitions, strings.ReplaceAll(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gizmos.GROUP"},
		"spec": {"group": "GROUP", "scope": "Cluster", "names": {"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`,
		"GROUP", group))
}

// live runs a client in live mode until the test ends, and gives the changes that it tells of.
func live(t *testing.T, conn *transport.Conn) (client *discovery.Client, next func() discovery.Change) {
	t.Helper()
	client = discovery.New(conn, nil)
	_, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.ErrorIs(t, client.Live(ctx), context.Canceled) })
	pull, stop := iter.Pull(client.Changes(ctx))
	t.Cleanup(func() { stop(); cancel(); running.Wait() })
	return client, func() discovery.Change {
		t.Helper()
		change, more := pull()
		require.True(t, more)
		return change
	}
}

func TestLiveModeTellsOfDefinitionsAsTheyComeChangeAndGo(t *testing.T) {
	conn := sandbox(t)
	client, next := live(t, conn)
	define(t, conn, "live.example.com")
	added := next()
	assert.Nil(t, added.Before)
	require.NotNil(t, added.After)
	assert.Equal(t, "live.example.com/v1, Kind=Gizmo", added.After.GVK.String())

	const path = definitions + "/gizmos.live.example.com"
	send(t.Context(), t, conn, http.MethodPatch, path, `{"spec":{"names":{"shortNames":["gz"]}}}`)
	changed := next()
	require.NotNil(t, changed.Before)
	require.NotNil(t, changed.After)
	assert.Equal(t, []string{"gz"}, changed.After.ShortNames)

	send(t.Context(), t, conn, http.MethodDelete, path, "{}")
	removed := next()
	for removed.After != nil { // a definition that is going first takes no more new objects
		assert.NotContains(t, removed.After.Verbs, "create")
		removed = next()
	}
	assert.Equal(t, "gizmos", removed.Before.GVR.Resource)
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, snapshot.Removed)
	assert.Equal(t, "live.example.com", snapshot.Removed[0].Resource.GVR.Group)
}

func TestLiveModeSurvivesAServerThatRestarts(t *testing.T) {
	conn := sandbox(t)
	_, next := live(t, conn)
	sandboxtest.RestartAPIServer(t, true)
	define(t, conn, "survives.example.com")
	t.Cleanup(func() {
		send(context.WithoutCancel(t.Context()), t, conn, http.MethodDelete, definitions+"/gizmos.survives.example.com", "{}")
	})
	for {
		change := next() // what other tests removed may still be on its way
		if change.After != nil && change.After.GVR.Group == "survives.example.com" {
			return
		}
	}
}

func TestLiveModeEndsWhereTheUserMayNotWatchDefinitions(t *testing.T) {
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: sandboxtest.Kubeconfig(t), Context: "limited"})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	err = discovery.New(conn, nil).Live(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// TestAServiceThatPointsAtNothingHidesNothingElse registers an APIService of a server that is not there.
func TestAServiceThatPointsAtNothingHidesNothingElse(t *testing.T) {
	conn := sandbox(t)
	client := discovery.New(conn, nil)
	before, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	send(t.Context(), t, conn, http.MethodPost, services, `{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.nothing.example.com"},
		"spec": {"group": "nothing.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
			"insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "nothing"}}}`)
	t.Cleanup(func() {
		send(context.WithoutCancel(t.Context()), t, conn, http.MethodDelete, services+"/v1.nothing.example.com", "{}")
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		after, err := client.Refresh(t.Context())
		require.NoError(t, err)
		if version := versionOf(after, "nothing.example.com"); version != nil {
			assert.False(t, version.Healthy())
			assert.Empty(t, version.Resources)
			served := sorted(after)
			for name := range sorted(before) {
				if !strings.Contains(name, "example.com") { // other tests' come and go
					assert.Contains(t, served, name)
				}
			}
			return
		}
		require.True(t, time.Now().Before(deadline), "the group never appeared")
	}
}

func versionOf(snapshot *discovery.Snapshot, group string) *discovery.Version {
	for i := range snapshot.Groups {
		if snapshot.Groups[i].Name == group {
			return &snapshot.Groups[i].Versions[0]
		}
	}
	return nil
}
