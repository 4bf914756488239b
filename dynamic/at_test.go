package dynamic_test

import (
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/restmapper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPathGivesItsHandleAndTheHandleItsPath(t *testing.T) {
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
		"/apis/apps/v1/namespaces/shop/deployments/web":       {"deployments.apps", "web"},
		"/apis/apps/v1/namespaces/shop/deployments/web/scale": {"deployments.apps/scale", "web"},
	} {
		r, name, err := client.At(t.Context(), path)
		require.NoError(t, err, path)
		assert.Equal(t, want.resource, r.String(), path)
		assert.Equal(t, want.name, name, path)
		back, err := r.Path(name)
		assert.NoError(t, err, path)
		assert.Equal(t, path, back)
	}
}

func TestAtIsWhereTheVerbsGo(t *testing.T) {
	client, server := script(t, podReply)
	pods, name, err := client.At(t.Context(), "/api/v1/namespaces/shop/pods/web/status")
	require.NoError(t, err)
	_, err = pods.Get(t.Context(), name, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"GET /api/v1/namespaces/shop/pods/web/status"}, server.seen())
}

func TestAWrongPathIsRefusedWithItsReason(t *testing.T) {
	client, _ := script(t)
	for path, want := range map[string]string{
		"":                                    `find the resource at "": its part "" is empty`,
		"/":                                   `find the resource at "/": its part "" is empty`,
		"/healthz":                            `find the resource at "/healthz": it is not of the form /api/VERSION/… or /apis/GROUP/VERSION/…, with a resource behind that`,
		"/api/v1":                             `find the resource at "/api/v1": it is not of the form /api/VERSION/… or /apis/GROUP/VERSION/…, with a resource behind that`,
		"/api/v1/pods/":                       `find the resource at "/api/v1/pods/": its part "" is empty`,
		"/api/v1/namespaces/../pods":          `find the resource at "/api/v1/namespaces/../pods": its part ".." may not be '..'`,
		"/api/v1/nodes/a%2Fb":                 `find the resource at "/api/v1/nodes/a%2Fb": its part "a%2Fb" may not contain '/'`,
		"/api/v1/pods?watch=1":                `find the resource at "/api/v1/pods?watch=1": a query is no part of it: the verbs take options`,
		"/api/v1/pods/web":                    `find the resource at "/api/v1/pods/web": Pod is namespaced: put namespaces/NAME before pods`,
		"/api/v1/namespaces/shop/nodes/n1":    `find the resource at "/api/v1/namespaces/shop/nodes/n1": Node is cluster-scoped: leave namespaces/shop out`,
		"/api/v1/namespaces/shop/po/web":      `find the resource at "/api/v1/namespaces/shop/po/web": the path must name the resource in full: pods`,
		"/api/v1/namespaces/s/pods/w/proxy/x": `find the resource at "/api/v1/namespaces/s/pods/w/proxy/x": it goes on behind the subresource proxy`,
	} {
		_, _, err := client.At(t.Context(), path)
		assert.EqualError(t, err, want)
	}
	_, _, err := client.At(t.Context(), "/apis/apps/v1/namespaces/shop/deploymints")
	var missing *restmapper.NoMatchError
	require.ErrorAs(t, err, &missing)
	assert.Contains(t, err.Error(), "did you mean deployments.apps?")
}

func TestAPathThatCannotBeIsRefused(t *testing.T) {
	client, _ := script(t)
	pods := resource(t, client, "pods")
	for want, r := range map[string]*dynamic.Resource{
		`find pods "web": one object needs a namespace: choose it with In`:                                                        pods.AllNamespaces(),
		`find pods "web": the namespace "../x" may not contain '/': choose one with In, or AllNamespaces to list or watch in all`: pods.In("../x"),
	} {
		_, err := r.Path("web")
		var refused *dynamic.RefusedError
		require.ErrorAs(t, err, &refused)
		assert.EqualError(t, err, want)
	}
	_, err := pods.Sub("status").Path("")
	assert.EqualError(t, err, `find pods/status: a subresource belongs to one object: give the object's name`)
}
