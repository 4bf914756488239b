package dynamic_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

const (
	definitionsResource = "cluster apiextensions.k8s.io/v1 customresourcedefinitions customresourcedefinition CustomResourceDefinition crd - get,list,watch\n"
	thingsResource      = "cluster example.com/v1 things thing Thing - - get\n"
	thingsDefinition    = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"things.example.com","uid":"u"%s},
		"spec":{"group":"example.com","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true},{"name":"v0","served":false}]},
		"status":{"conditions":[{"type":"Established","status":%q}]}}`
)

// laggingDiscovery returns the client of a server with a definition, none for "", and its handle. The server discovers things
// after lag. Until then discovery fails if it is broken.
func laggingDiscovery(t *testing.T, definition string, lag time.Duration, isBroken bool) (*dynamic.Client, *dynamic.Resource) {
	t.Helper()
	server := scripted.New(definitionsResource)
	server.Handle("", scripted.JSON(`{"kind":"CustomResourceDefinitionList","apiVersion":"apiextensions.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[`+definition+`]}`))
	client := serveClient(t, server, nil)
	definitions := resource(t, client, "crd")
	if isBroken {
		server.Handle("GET /apis", scripted.Status(http.StatusInternalServerError, "InternalError"))
	}
	time.AfterFunc(lag, func() {
		server.Serve(definitionsResource + thingsResource)
		server.Handle("GET /apis")
	})
	synctest.Wait()
	return client, definitions
}

func TestWait_EstablishedAwaitsDiscovery(t *testing.T) {
	established := fmt.Sprintf(thingsDefinition, "", "True")
	not := fmt.Sprintf(thingsDefinition, "", "False")
	terminating := fmt.Sprintf(thingsDefinition, `,"deletionTimestamp":"2026-01-02T03:04:05Z"`, "True")
	for name, c := range map[string]struct {
		definition string
		lag        time.Duration
		isBroken   bool
		condition  dynamic.WaitCondition
		resolved   bool
		most       time.Duration
	}{
		"served already":       {established, 0, false, dynamic.Condition("Established"), true, 0},
		"served soon":          {established, 300 * time.Millisecond, false, dynamic.Condition("Established"), true, time.Second},
		"served late":          {established, 6 * time.Second, false, dynamic.Condition("Established"), true, 8 * time.Second},
		"exists":               {established, time.Second, false, dynamic.Exists(), true, 3 * time.Second},
		"never served":         {established, time.Hour, false, dynamic.Condition("Established"), false, 10 * time.Second},
		"discovery broken":     {established, 2 * time.Second, true, dynamic.Condition("Established"), true, 5 * time.Second},
		"not established":      {not, time.Hour, false, dynamic.Exists(), false, 0},
		"being deleted":        {terminating, time.Hour, false, dynamic.Exists(), false, 0},
		"deleted":              {"", time.Hour, false, dynamic.Deleted(), false, 0},
		"the definition alone": {`{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"things.example.com"}}`, time.Hour, false, dynamic.Exists(), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, definitions := laggingDiscovery(t, c.definition, c.lag, c.isBroken)
				began := time.Now()
				_, err := definitions.Wait(t.Context(), "things.example.com", c.condition)
				require.NoError(t, err)
				assert.LessOrEqual(t, time.Since(began), c.most)
				_, byName := client.Resource(t.Context(), "things.example.com")
				_, byKind := client.ForKind(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"})
				if c.resolved {
					assert.NoError(t, byName)
					assert.NoError(t, byKind)
				} else {
					assert.Error(t, byName)
					assert.Error(t, byKind)
				}
			})
		})
	}
}

func TestWait_EstablishedEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, definitions := laggingDiscovery(t, fmt.Sprintf(thingsDefinition, "", "True"), time.Hour, false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := definitions.Wait(ctx, "things.example.com", dynamic.Condition("Established"))
		require.NoError(t, err, "the condition holds")
		assert.Equal(t, time.Second, time.Since(began))
	})
}

// TestWait_EstablishedKindsResolve registers kinds concurrently and looks each up in one of several ways.
func TestWait_EstablishedKindsResolve(t *testing.T) {
	client, namespace := newNamespace(t)
	definitions := resource(t, client, "crd")
	for i := range 40 {
		group := fmt.Sprintf("g%d.%s.example.com", i%7, namespace)
		plural := fmt.Sprintf("things%d", i)
		kind := fmt.Sprintf("Thing%d", i)
		lookups := []struct {
			name string
			find func() (*dynamic.Resource, error)
		}{
			{"name and group", func() (*dynamic.Resource, error) { return client.Resource(t.Context(), plural+"."+group) }},
			{"name, version and group", func() (*dynamic.Resource, error) { return client.Resource(t.Context(), plural+".v2."+group) }},
			{"name", func() (*dynamic.Resource, error) { return client.Resource(t.Context(), plural) }},
			{"kind", func() (*dynamic.Resource, error) {
				return client.ForKind(t.Context(), schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
			}},
			{"kind without version", func() (*dynamic.Resource, error) {
				return client.ForKind(t.Context(), schema.GroupVersionKind{Group: group, Kind: kind})
			}},
		}
		t.Run(plural, func(t *testing.T) {
			t.Parallel()
			version := func(name string) map[string]any {
				return map[string]any{"name": name, "served": true, "storage": name == "v1",
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}
			}
			_, err := definitions.Create(t.Context(), &unstructured.Object{Object: map[string]any{
				"metadata": map[string]any{"name": plural + "." + group},
				"spec": map[string]any{
					"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind},
					"versions": []any{version("v1"), version("v2")},
				},
			}}, nil)
			require.NoError(t, err)
			removed(t, definitions, plural+"."+group)
			_, err = definitions.Wait(t.Context(), plural+"."+group, dynamic.Condition("Established"))
			require.NoError(t, err)
			lookup := lookups[i%len(lookups)]
			found, err := lookup.find()
			require.NoError(t, err, lookup.name)
			assert.Equal(t, kind, found.APIResource().GVK.Kind, lookup.name)
		})
	}
}
