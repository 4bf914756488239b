package dynamic_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// gate is a network that a test can take down, with all responses in progress.
type gate struct {
	next http.RoundTripper

	mu      sync.Mutex
	down    bool
	cancels []context.CancelFunc
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return nil, errors.New("the network is down")
	}
	ctx, cancel := context.WithCancel(r.Context())
	g.cancels = append(g.cancels, cancel)
	return g.next.RoundTrip(r.WithContext(ctx))
}

func (g *gate) set(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
	for _, cancel := range g.cancels {
		cancel()
	}
	g.cancels = nil
}

// gated returns a client whose connections a test can break.
func gated(t *testing.T, kubeContext string) (*dynamic.Client, *gate) {
	t.Helper()
	g := &gate{}
	t.Cleanup(func() { g.set(true) })
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t), Context: kubeContext})
	require.NoError(t, err)
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper { g.next = next; return g }
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client, g
}

// gadgets returns the definition of a kind with the versions v1 and v1beta1.
func gadgets(group string) *unstructured.Object {
	version := func(name string, storage bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}}
	}
	return named("gadgets."+group, map[string]any{
		"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "gadgets", "kind": "Gadget"},
		"versions": []any{version("v1", true), version("v1beta1", false)},
	})
}

// readUntil reads changes up to one of a type and returns their types.
func (m *mirror) readUntil(kind watch.EventType) (seen []watch.EventType) {
	m.t.Helper()
	for len(seen) == 0 || seen[len(seen)-1] != kind {
		seen = append(seen, m.read())
	}
	return seen
}

func TestFollow_VersionNotServedAndServedAgain(t *testing.T) {
	t.Parallel() // after the tests that restart the server
	client, namespace := newNamespace(t)
	group := namespace + ".example.com"
	crds := resource(t, client, "crd")
	definition, err := crds.Create(t.Context(), gadgets(group), nil)
	require.NoError(t, err)
	removed(t, crds, definition.GetName())
	_, err = crds.Wait(t.Context(), definition.GetName(), dynamic.Condition("Established"))
	require.NoError(t, err)
	beta := resource(t, client, "gadgets.v1beta1."+group).Namespace(namespace)
	stable := resource(t, client, "gadgets.v1."+group).Namespace(namespace)
	serve := func(served string) {
		_, err := crds.Patch(t.Context(), definition.GetName(), types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/versions/1/served","value":`+served+`}]`), nil)
		require.NoError(t, err)
	}
	for _, name := range []string{"a", "b"} {
		_, err := stable.Create(t.Context(), named(name, nil), nil)
		require.NoError(t, err)
	}
	var broken interruptions
	followed := newMirror(t, beta, broken.options())
	followed.readUntil(dynamic.Synced)
	require.Len(t, followed.objects, 2)

	serve("false")
	assert.Equal(t, []watch.EventType{dynamic.NotServed}, followed.readUntil(dynamic.NotServed))
	assert.Len(t, followed.objects, 2)
	patched(t, stable, "a", `{"spec":{"x":1}}`)
	_, err = stable.Delete(t.Context(), "b", nil)
	require.NoError(t, err)

	serve("true")
	seen := followed.readUntil(dynamic.Synced)
	assert.Equal(t, []watch.EventType{dynamic.Started, watch.Modified, watch.Deleted, dynamic.Synced}, seen, "only the differences")
	assert.ErrorContains(t, broken[len(broken)-1].Err, "not served, its objects are kept")
	patched(t, stable, "a", `{"spec":{"x":2}}`)
	assert.Equal(t, watch.Modified, followed.read())
	followed.readUntilEqual(stable)
}

func TestFollow_DefinitionDeletedWhileDisconnected(t *testing.T) {
	t.Parallel() // after the tests that restart the server
	client, namespace := newNamespace(t)
	group := namespace + ".example.com"
	crds := resource(t, client, "crd")
	_, err := crds.Create(t.Context(), gadgets(group), nil)
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "gadgets."+group, dynamic.Condition("Established"))
	require.NoError(t, err)
	stable := resource(t, client, "gadgets.v1."+group).Namespace(namespace)
	_, err = stable.Create(t.Context(), named("a", nil), nil)
	require.NoError(t, err)
	rule := map[string]any{"apiGroups": []any{group}, "resources": []any{"gadgets"}, "verbs": []any{"get", "list", "watch"}}
	grantRule(t, client, namespace, rule)
	admin, adminNetwork := gated(t, "admin")
	limited, limitedNetwork := gated(t, "limited") // may not read definitions
	follow := func(client *dynamic.Client) *mirror {
		of := resource(t, client, "gadgets.v1."+group).Namespace(namespace)
		allowed(t, of, "a")
		followed := newMirror(t, of, nil)
		followed.readUntil(dynamic.Synced)
		return followed
	}
	both := []*mirror{follow(admin), follow(limited)}

	adminNetwork.set(true)
	limitedNetwork.set(true)
	_, err = crds.Delete(t.Context(), "gadgets."+group, nil)
	require.NoError(t, err)
	_, err = crds.Wait(t.Context(), "gadgets."+group, dynamic.Deleted())
	require.NoError(t, err)
	adminNetwork.set(false)
	limitedNetwork.set(false)
	for _, followed := range both {
		assert.Equal(t, []watch.EventType{dynamic.NotServed}, followed.readUntil(dynamic.NotServed))
	}
	assert.Equal(t, watch.Deleted, both[0].read(), "its definition is deleted")
	assert.Empty(t, both[0].objects)
	assert.Len(t, both[1].objects, 1, "kept, since the definition was never read")

	_, err = crds.Create(t.Context(), gadgets(group), nil)
	require.NoError(t, err)
	removed(t, crds, "gadgets."+group)
	assert.Equal(t, []watch.EventType{dynamic.Started, dynamic.Synced}, both[0].readUntil(dynamic.Synced))
	assert.Equal(t, []watch.EventType{dynamic.Started, watch.Deleted, dynamic.Synced}, both[1].readUntil(dynamic.Synced))
	_, err = stable.Create(t.Context(), named("b", nil), nil)
	require.NoError(t, err)
	for _, followed := range both {
		assert.Equal(t, watch.Added, followed.read())
		followed.readUntilEqual(stable)
	}
}
