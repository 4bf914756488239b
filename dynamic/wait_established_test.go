package dynamic_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const (
	definitionsIndex = `{"metadata":{"name":"apiextensions.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"customresourcedefinitions",
		"responseKind":{"group":"apiextensions.k8s.io","version":"v1","kind":"CustomResourceDefinition"},"scope":"Cluster","singularResource":"customresourcedefinition",
		"shortNames":["crd"],"verbs":["get","list","watch"]}]}]}`
	thingsIndex = `{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[{"resource":"things",
		"responseKind":{"group":"example.com","version":"v1","kind":"Thing"},"scope":"Cluster","singularResource":"thing","verbs":["get"]}]}]}`
	thingsDefinition = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"things.example.com","uid":"u"%s},
		"spec":{"group":"example.com","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true},{"name":"v0","served":false}]},
		"status":{"conditions":[{"type":"Established","status":%q}]}}`
)

// laggingDiscovery is a server whose discovery lags behind an established definition.
type laggingDiscovery struct {
	definition string // "" if it does not exist
	since      time.Time
	lag        time.Duration
	broken     bool // discovery fails until then
}

func (s *laggingDiscovery) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	lags := time.Since(s.since) < s.lag
	index := definitionsIndex
	if !lags {
		index += "," + thingsIndex
	}
	switch {
	case r.URL.Path == "/api":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","items":[]}`)
	case r.URL.Path == "/apis" && s.broken && lags && !s.since.Equal(time.Now()):
		http.Error(w, "{}", http.StatusInternalServerError)
	case r.URL.Path == "/apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","items":[%s]}`, index)
	case s.definition == "":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"things.example.com"}}`)
	default:
		fmt.Fprint(w, s.definition)
	}
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

func TestWait_EstablishedAwaitsDiscovery(t *testing.T) {
	established := fmt.Sprintf(thingsDefinition, "", "True")
	not := fmt.Sprintf(thingsDefinition, "", "False")
	terminating := fmt.Sprintf(thingsDefinition, `,"deletionTimestamp":"2026-01-02T03:04:05Z"`, "True")
	for name, c := range map[string]struct {
		server    laggingDiscovery
		condition dynamic.WaitCondition
		resolved  bool
		most      time.Duration
	}{
		"served already":       {laggingDiscovery{definition: established}, dynamic.Condition("Established"), true, 0},
		"served soon":          {laggingDiscovery{definition: established, lag: 300 * time.Millisecond}, dynamic.Condition("Established"), true, time.Second},
		"served late":          {laggingDiscovery{definition: established, lag: 6 * time.Second}, dynamic.Condition("Established"), true, 8 * time.Second},
		"exists":               {laggingDiscovery{definition: established, lag: time.Second}, dynamic.Exists(), true, 3 * time.Second},
		"never served":         {laggingDiscovery{definition: established, lag: time.Hour}, dynamic.Condition("Established"), false, 10 * time.Second},
		"discovery broken":     {laggingDiscovery{definition: established, lag: 2 * time.Second, broken: true}, dynamic.Condition("Established"), true, 5 * time.Second},
		"not established":      {laggingDiscovery{definition: not, lag: time.Hour}, dynamic.Exists(), false, 0},
		"being deleted":        {laggingDiscovery{definition: terminating, lag: time.Hour}, dynamic.Exists(), false, 0},
		"deleted":              {laggingDiscovery{lag: time.Hour}, dynamic.Deleted(), false, 0},
		"the definition alone": {laggingDiscovery{definition: `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1"}`, lag: time.Hour}, dynamic.Exists(), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := c.server
				server.since = time.Now()
				conn, err := transport.New("http://bubble", &http.Client{Transport: &server}, nil)
				require.NoError(t, err)
				client := dynamic.New(conn, nil)
				defer client.Close()
				definitions := resource(t, client, "crd")
				began := time.Now()
				_, err = definitions.Wait(t.Context(), "things.example.com", c.condition)
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
		server := &laggingDiscovery{definition: fmt.Sprintf(thingsDefinition, "", "True"), since: time.Now(), lag: time.Hour}
		conn, err := transport.New("http://bubble", &http.Client{Transport: server}, nil)
		require.NoError(t, err)
		client := dynamic.New(conn, nil)
		defer client.Close()
		definitions := resource(t, client, "crd")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = definitions.Wait(ctx, "things.example.com", dynamic.Condition("Established"))
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
