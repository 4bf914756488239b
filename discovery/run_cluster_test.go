package discovery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
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

// live calls Run until the test ends. until receives the changes of one group up to the one for which its function returns
// true.
func live(t *testing.T, conn *transport.Conn, group string) (client *discovery.Client, until func(func(discovery.ResourceChange) bool)) {
	t.Helper()
	client = discovery.New(conn, nil)
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		assert.ErrorIs(t, client.Run(ctx), context.Canceled)
		cancel() // whoever waits for a change ends, too
	})
	next, stop := iter.Pull(client.Changes(ctx, snapshot))
	t.Cleanup(func() { stop(); cancel(); running.Wait() })
	return client, func(isIt func(discovery.ResourceChange) bool) {
		t.Helper()
		for {
			change, more := next()
			require.True(t, more)
			resource := change.New
			if resource == nil {
				resource = change.Old
			}
			if resource.GVR.Group == group && isIt(change) {
				return
			}
		}
	}
}

// unique is a group that no other test, and no other run of this one, has.
func unique(name string) string { return fmt.Sprintf("%s%d.example.com", name, time.Now().UnixNano()) }

func TestRun_ReportsDefinitionsOfRealServer(t *testing.T) {
	conn := sandbox(t)
	group := unique("live")
	client, until := live(t, conn, group)
	define(t, conn, group)
	until(func(c discovery.ResourceChange) bool { return c.Old == nil && c.New.GVK.Kind == "Gizmo" })

	path := definitions + "/gizmos." + group
	send(t.Context(), t, conn, http.MethodPatch, path, `{"spec":{"names":{"shortNames":["gz"]}}}`)
	until(func(c discovery.ResourceChange) bool {
		return c.Old != nil && c.New != nil && slices.Equal(c.New.ShortNames, []string{"gz"})
	})

	send(t.Context(), t, conn, http.MethodDelete, path, "{}")
	until(func(c discovery.ResourceChange) bool { return c.New == nil && c.Old.GVR.Resource == "gizmos" })
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	assert.True(t, slices.ContainsFunc(snapshot.Removed, func(r discovery.RemovedResource) bool { return r.Resource.GVR.Group == group }))
}

func TestRun_SurvivesServerRestart(t *testing.T) {
	conn := sandbox(t)
	group := unique("survives")
	_, until := live(t, conn, group)
	cluster.RestartAPIServer(t, true)
	define(t, conn, group)
	t.Cleanup(func() {
		send(context.WithoutCancel(t.Context()), t, conn, http.MethodDelete, definitions+"/gizmos."+group, "{}")
	})
	until(func(c discovery.ResourceChange) bool { return c.Old == nil })
}

// TestRun_SurvivesRestartsWithRBACRights has a user whom a starting server denies allGroups until it has read the
// roles; administrators never see that.
func TestRun_SurvivesRestartsWithRBACRights(t *testing.T) {
	admin := sandbox(t)
	name := fmt.Sprintf("live-%d", time.Now().UnixNano())
	const roles, bindings = "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	send(t.Context(), t, admin, http.MethodPost, accounts, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	send(t.Context(), t, admin, http.MethodPost, roles, fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"verbs":["list","watch"],
		"apiGroups":["apiextensions.k8s.io","apiregistration.k8s.io"],"resources":["customresourcedefinitions","apiservices"]}]}`, name))
	send(t.Context(), t, admin, http.MethodPost, bindings, fmt.Sprintf(`{"metadata":{"name":%q},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},
		"subjects":[{"kind":"ServiceAccount","name":%q,"namespace":"default"}]}`, name, name, name))
	t.Cleanup(func() {
		for _, path := range []string{accounts, roles, bindings} {
			send(context.WithoutCancel(t.Context()), t, admin, http.MethodDelete, path+"/"+name, "{}")
		}
	})
	response, err := admin.Do(t.Context(), &transport.Request{
		Method: http.MethodPost, Path: accounts + "/" + name + "/token", Body: []byte(`{"spec":{}}`),
		Header: http.Header{"Content-Type": {"application/json"}},
	})
	require.NoError(t, err)
	var request struct{ Status struct{ Token string } }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&request))
	require.NoError(t, response.Body.Close())
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(&transport.Config{Server: cfg.Server, CAFile: cfg.CAFile, CAData: cfg.CAData, Token: kubeconfig.NewSecret(request.Status.Token)})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	require.Eventually(t, func() bool { // the server has read the roles
		for _, path := range []string{definitions, services} {
			response, err := conn.Do(t.Context(), &transport.Request{Path: path})
			if err != nil {
				return false
			}
			_ = response.Body.Close()
		}
		return true
	}, time.Minute, 20*time.Millisecond)

	group := unique("rbac")
	_, until := live(t, conn, group)
	for range 2 {
		cluster.RestartAPIServer(t, true)
	}
	define(t, admin, group)
	t.Cleanup(func() {
		send(context.WithoutCancel(t.Context()), t, admin, http.MethodDelete, definitions+"/gizmos."+group, "{}")
	})
	until(func(c discovery.ResourceChange) bool { return c.Old == nil })
}

func TestRun_EndsIfWatchIsForbidden(t *testing.T) {
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: "limited"})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	err = discovery.New(conn, nil).Run(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// TestRefresh_UnreachableAPIServiceFailsAlone registers an APIService of a server that is not there.
func TestRefresh_UnreachableAPIServiceFailsAlone(t *testing.T) {
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
