package resourcepath

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse_LikeAPIServer(t *testing.T) {
	for path, want := range map[string]Path{
		"/api/v1/pods":                                {Version: "v1", Resource: "pods"},
		"/api/v1/nodes/a/proxy/b/c":                   {Version: "v1", Resource: "nodes", Name: "a", Subresource: "proxy", Rest: []string{"b", "c"}},
		"/api/v1/namespaces/shop":                     {Version: "v1", Resource: "namespaces", Name: "shop"},
		"/api/v1/namespaces/shop/finalize":            {Version: "v1", Resource: "namespaces", Name: "shop", Subresource: "finalize", Rest: []string{}},
		"/api/v1/namespaces/shop/pods/":               {Version: "v1", Namespace: "shop", Resource: "pods"},
		"/apis/apps/v1/namespaces/shop/deployments/a": {Group: "apps", Version: "v1", Namespace: "shop", Resource: "deployments", Name: "a"},
		"/apis/apps/v1/watch/namespaces/shop/deployments/a": {
			Group: "apps", Version: "v1", Namespace: "shop", Resource: "deployments", Name: "a", IsWatch: true,
		},
	} {
		got, ok := Parse(path)
		assert.True(t, ok, path)
		assert.Equal(t, want, got, path)
	}
	for _, path := range []string{"", "/", "/version", "/api/v1", "/apis/apps/v1", "/openapi/v3/apis/apps/v1"} {
		_, ok := Parse(path)
		assert.False(t, ok, path)
	}
}
