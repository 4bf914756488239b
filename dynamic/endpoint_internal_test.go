package dynamic

import (
	"net/url"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
)

// TestPath_HostileSegments uses names that a hostile server may give to resources, and callers to objects.
func TestPath_HostileSegments(t *testing.T) {
	for _, bad := range []string{
		"..", ".", "../../api/v1/secrets", "a/b", "/", "%2e%2e", "a%2fb", "..\n", "a\x00b", "a\x1b[2J", "?", "#", "a?b=c", "a#b", "a b", "a;b", "ä", "\\..\\",
	} {
		for part, change := range map[string]func(e *endpoint){
			"group":       func(e *endpoint) { e.apiResource.GVR.Group = bad },
			"version":     func(e *endpoint) { e.apiResource.GVR.Version = bad },
			"resource":    func(e *endpoint) { e.apiResource.GVR.Resource = bad },
			"subresource": func(e *endpoint) { e.subresource = bad; e.apiResource.Subresources[0].Name = bad },
			"namespace":   func(e *endpoint) { e.namespace = bad },
			"name":        nil,
		} {
			e := &endpoint{namespace: "shop", subresource: "status", apiResource: &discovery.Resource{
				GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespaced: true,
				Verbs: []string{"get", "list"}, Subresources: []discovery.Subresource{{Name: "status", Verbs: []string{"get"}}},
			}}
			name := "web"
			if change == nil {
				name = bad
			} else {
				change(e)
			}
			request, err := e.objectRequest("get", name, nil)
			if err != nil {
				var refused *InvalidRequestError
				require.ErrorAs(t, err, &refused)
				continue
			}
			sent := request.Path
			plain, err := url.Parse("https://server" + sent)
			require.NoError(t, err)
			assert.Equal(t, path.Clean(plain.Path), plain.Path, "%s %q", part, bad)
			if part == "subresource" && bad == "a/b" {
				assert.Equal(t, "/apis/apps/v1/namespaces/shop/deployments/web/a/b", sent, "a subresource of two segments")
				continue
			}
			assert.Len(t, splitPath(plain.EscapedPath()), 8, "%s %q: %s", part, bad, sent)
			assert.Empty(t, plain.RawQuery+plain.Fragment, "%s %q: %s", part, bad, sent)
			assert.NotContains(t, []string{"..", ".", "a/b", "%2e%2e"}, bad, "%s: %s", part, sent)
		}
	}
}

func splitPath(escaped string) (segments []string) {
	for dir := escaped; dir != "/"; dir = path.Dir(dir) {
		segments = append(segments, path.Base(dir))
	}
	return segments
}
