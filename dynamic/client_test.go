package dynamic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/restmapper"
)

func TestClient_ForPathInvertsPath(t *testing.T) {
	client, _ := script(t, podReply)
	for path, want := range map[string]struct{ resource, name string }{
		"/api/v1/pods":                                        {"pods", ""},
		"/api/v1/namespaces/shop/pods":                        {"pods", ""},
		"/api/v1/namespaces/shop/pods/web":                    {"pods", "web"},
		"/api/v1/namespaces/shop/pods/web/status":             {"pods/status", "web"},
		"/api/v1/namespaces/shop":                             {"namespaces", "shop"},
		"/api/v1/namespaces/shop/finalize":                    {"namespaces/finalize", "shop"},
		"/api/v1/nodes":                                       {"nodes", ""},
		"/api/v1/nodes/system:node:%C3%BC":                    {"nodes", "system:node:ü"},
		"/api/v1/nodes/n1/proxy":                              {"nodes/proxy", "n1"},
		"/apis/apps/v1/deployments":                           {"deployments.apps", ""},
		"/apis/apps/v1/namespaces/shop/deployments/web":       {"deployments.apps", "web"},
		"/apis/apps/v1/namespaces/shop/deployments/web/scale": {"deployments.apps/scale", "web"},
	} {
		r, name, err := client.ForPath(t.Context(), path)
		require.NoError(t, err, path)
		assert.Equal(t, want.resource, r.String(), path)
		assert.Equal(t, want.name, name, path)
		back, err := r.Path(name)
		assert.NoError(t, err, path)
		assert.Equal(t, path, back)
	}
}

func TestClient_ForPathHandleSendsThere(t *testing.T) {
	client, server := script(t, podReply)
	pods, name, err := client.ForPath(t.Context(), "/api/v1/namespaces/shop/pods/web/status")
	require.NoError(t, err)
	_, err = pods.Get(t.Context(), name, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"GET /api/v1/namespaces/shop/pods/web/status"}, server.seen())
}

func TestClient_ForPathRejectsInvalidPaths(t *testing.T) {
	client, _ := script(t)
	for path, want := range map[string]string{
		"":                                    `find the resource at "": segment "" is empty`,
		"/":                                   `find the resource at "/": segment "" is empty`,
		"/healthz":                            `find the resource at "/healthz": not of the form /api/VERSION/RESOURCE… or /apis/GROUP/VERSION/RESOURCE…`,
		"/api/v1":                             `find the resource at "/api/v1": not of the form /api/VERSION/RESOURCE… or /apis/GROUP/VERSION/RESOURCE…`,
		"/apis/apps/v1":                       `find the resource at "/apis/apps/v1": not of the form /api/VERSION/RESOURCE… or /apis/GROUP/VERSION/RESOURCE…`,
		"/foo/apps/v1/deployments":            `find the resource at "/foo/apps/v1/deployments": not of the form /api/VERSION/RESOURCE… or /apis/GROUP/VERSION/RESOURCE…`,
		"/api/v1/nodes/%zz":                   `find the resource at "/api/v1/nodes/%zz": invalid URL escape "%zz"`,
		"/api/v1/pods/":                       `find the resource at "/api/v1/pods/": segment "" is empty`,
		"/api/v1/namespaces/../pods":          `find the resource at "/api/v1/namespaces/../pods": segment ".." may not be '..'`,
		"/api/v1/nodes/a%2Fb":                 `find the resource at "/api/v1/nodes/a%2Fb": segment "a%2Fb" may not contain '/'`,
		"/api/v1/pods?watch=1":                `find the resource at "/api/v1/pods?watch=1": a query is not part of a path (pass options to the verbs)`,
		"/api/v1/pods/web":                    `find the resource at "/api/v1/pods/web": Pod is namespaced (put namespaces/NAME before pods)`,
		"/api/v1/namespaces/shop/nodes/n1":    `find the resource at "/api/v1/namespaces/shop/nodes/n1": Node is cluster-scoped (remove namespaces/shop)`,
		"/api/v1/namespaces/shop/po/web":      `find the resource at "/api/v1/namespaces/shop/po/web": short name in a path (use pods)`,
		"/api/v1/namespaces/s/pods/w/proxy/x": `find the resource at "/api/v1/namespaces/s/pods/w/proxy/x": segments after the subresource proxy`,
	} {
		_, _, err := client.ForPath(t.Context(), path)
		assert.EqualError(t, err, want)
	}
	_, _, err := client.ForPath(t.Context(), "/apis/apps/v1/namespaces/shop/deploymints")
	var missing *restmapper.NoMatchError
	require.ErrorAs(t, err, &missing)
	assert.Contains(t, err.Error(), "did you mean deployments.apps?")
}

func TestResource_PathRejectsInvalidHandles(t *testing.T) {
	client, _ := script(t)
	pods := resource(t, client, "pods")
	for want, r := range map[string]*dynamic.Resource{
		`find pods "web": one object needs a namespace (choose it with Namespace)`:                                                        pods.AllNamespaces(),
		`find pods "web": the namespace "../x" may not contain '/' (choose one with Namespace, or AllNamespaces to list or watch in all)`: pods.Namespace("../x"),
	} {
		_, err := r.Path("web")
		var refused *dynamic.InvalidRequestError
		require.ErrorAs(t, err, &refused)
		assert.EqualError(t, err, want)
	}
	_, err := pods.Subresource("status").Path("")
	assert.EqualError(t, err, `find pods/status: a subresource belongs to one object (give the object's name)`)
}

func TestClient_ForObject(t *testing.T) {
	client, server := script(t, podReply)
	pods, err := client.ForObject(t.Context(), in("shop", object("Pod", "web")))
	require.NoError(t, err)
	_, err = pods.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	deployments, err := client.ForObject(t.Context(), object("Deployment", "web"))
	require.NoError(t, err)
	_, err = deployments.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"GET /api/v1/namespaces/shop/pods/web", "GET /apis/apps/v1/namespaces/home/deployments/web"}, server.seen())

	_, err = client.ForKind(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v2", Kind: "Deployment"})
	require.ErrorContains(t, err, "but in v1")
	_, err = client.ForObject(t.Context(), nil)
	require.ErrorContains(t, err, "the object is nil")
}

func TestClient_PreferredResources(t *testing.T) {
	client, server := script(t, `{"kind":"List","metadata":{},"items":[]}`)
	for name, test := range map[string]struct {
		filter *discovery.ResourceFilter
		want   []string
	}{
		"all":        {nil, []string{"namespaces", "nodes", "bindings", "serviceaccounts", "pods", "deployments.apps"}},
		"namespaced": {&discovery.ResourceFilter{Namespaced: new(true), Verbs: []string{"list", "watch"}}, []string{"pods", "deployments.apps"}},
		"none":       {&discovery.ResourceFilter{Groups: []string{"none"}}, nil},
	} {
		resources, err := client.PreferredResources(t.Context(), test.filter)
		require.NoError(t, err, name)
		var got []string
		for _, r := range resources {
			got = append(got, r.String())
		}
		assert.Equal(t, test.want, got, name)
	}
	resources, err := client.PreferredResources(t.Context(), &discovery.ResourceFilter{Verbs: []string{"list"}, Groups: []string{""}})
	require.NoError(t, err)
	for _, r := range resources {
		for _, err := range r.AllNamespaces().List(t.Context(), nil) {
			require.NoError(t, err)
		}
	}
	assert.Equal(t, []string{"GET /api/v1/namespaces?limit=500", "GET /api/v1/nodes?limit=500", "GET /api/v1/pods?limit=500"}, server.seen())
}

func TestClient_WaitForServed(t *testing.T) {
	client, _ := script(t, podReply)
	resources, err := client.WaitForResources(t.Context(), "deploy", "pods")
	require.NoError(t, err)
	assert.Equal(t, "deployments.apps", resources[0].String())
	path, err := resources[1].Path("web")
	require.NoError(t, err)
	assert.Equal(t, "/api/v1/namespaces/home/pods/web", path, "in the default namespace")
	resources, err = client.WaitForKinds(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Node"})
	require.NoError(t, err)
	assert.Equal(t, "nodes", resources[0].String())
}

func TestClient_WaitForServedEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := script(t, podReply)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		resources, err := client.WaitForResources(ctx, "pods", "things")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.True(t, meta.IsNoMatchError(err), err)
		assert.Nil(t, resources)
	})
}
