package dynamic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

func TestDefaults_RequestOfEachVerb(t *testing.T) {
	all := &dynamic.Defaults{FieldManager: "me", FieldValidation: metav1.FieldValidationStrict, DryRun: true}
	with := func(t *testing.T, c *dynamic.Client, name string) *dynamic.Resource {
		return resource(t, c, name).WithDefaults(all)
	}
	checkRequests(t, map[string]func(*testing.T, *dynamic.Client) error{
		`POST /api/v1/namespaces/home/pods?dryRun=All&fieldManager=me&fieldValidation=Strict application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := with(t, c, "pods").Create(t.Context(), object("Pod", "web"), nil)
			return err
		},
		`PUT /api/v1/namespaces/home/pods/web?dryRun=All&fieldManager=you&fieldValidation=Warn application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := with(t, c, "pods").Update(t.Context(), object("Pod", "web"), &metav1.UpdateOptions{FieldManager: "you", FieldValidation: "Warn"})
			return err
		},
		`PATCH /api/v1/namespaces/home/pods/web?dryRun=All&fieldManager=me&fieldValidation=Strict application/merge-patch+json {}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := with(t, c, "pods").Patch(t.Context(), "web", types.MergePatchType, []byte(`{}`), &metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		},
		`PATCH /api/v1/namespaces/home/pods/web?dryRun=All&fieldManager=me&force=false application/apply-patch+yaml {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := with(t, c, "pods").Apply(t.Context(), object("Pod", "web"), nil)
			return err
		},
		`DELETE /api/v1/namespaces/home/pods/web application/json {"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := with(t, c, "pods").Delete(t.Context(), "web", nil)
			return err
		},
		`DELETE /api/v1/namespaces/home/pods application/json {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"dryRun":["All"]}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := with(t, c, "pods").DeleteCollection(t.Context(), &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, nil)
			return err
		},
		`POST /api/v1/namespaces/home/pods/web/eviction?dryRun=All&fieldManager=me&fieldValidation=Strict application/json {"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"web"},"deleteOptions":{"dryRun":["All"]}}`: func(t *testing.T, c *dynamic.Client) error {
			return with(t, c, "pods").Evict(t.Context(), "web", nil)
		},
		`PATCH /apis/apps/v1/namespaces/home/deployments/web/scale?dryRun=All&fieldManager=me&fieldValidation=Strict application/merge-patch+json {"spec":{"replicas":3}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := with(t, c, "deploy").Scale(t.Context(), "web", 3, nil)
			return err
		},
		`GET /api/v1/namespaces/home/pods/web`: func(t *testing.T, c *dynamic.Client) error {
			_, err := with(t, c, "pods").Get(t.Context(), "web", nil)
			return err
		},
		`GET /api/v1/namespaces/home/pods?watch=true`: func(t *testing.T, c *dynamic.Client) error {
			return drain(with(t, c, "pods").Watch(t.Context(), nil))
		},
		`POST /api/v1/namespaces/home/pods?fieldManager=typed application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`: func(t *testing.T, c *dynamic.Client) error {
			type pod struct {
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			web := &pod{}
			web.Metadata.Name = "web"
			_, err := dynamic.As[pod](resource(t, c, "pods")).WithDefaults(&dynamic.Defaults{FieldManager: "typed"}).Create(t.Context(), web, nil)
			return err
		},
	})
}

func TestDefaults_OptionsAreNotChanged(t *testing.T) {
	client, _ := script(t, podReply)
	options := &metav1.DeleteOptions{}
	_, err := resource(t, client, "pods").WithDefaults(&dynamic.Defaults{DryRun: true}).Delete(t.Context(), "web", options)
	require.NoError(t, err)
	assert.Empty(t, options.DryRun)
}

func TestDefaults_OfClientAndHandle(t *testing.T) {
	client, server := script(t, podReply)
	staged := client.WithDefaults(&dynamic.Defaults{Namespace: "stage", FieldManager: "app"})
	dry := staged.WithDefaults(&dynamic.Defaults{DryRun: true}).WithDefaults(nil).WithDefaults(&dynamic.Defaults{})
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	pods := resource(t, dry, "pods")
	for _, r := range []*dynamic.Resource{
		pods, pods.WithDefaults(&dynamic.Defaults{FieldManager: "handle", Namespace: "other"}), pods.Namespace("shop").WithDefaults(&dynamic.Defaults{Namespace: "other"}),
		pods.WithDefaults(nil), resource(t, staged, "pods"), resource(t, client, "pods"), resource(t, dry, "nodes"), dry.ForGVR(gvr), dry.ForAPIResource(pods.APIResource()),
	} {
		_, err := r.Create(t.Context(), kindless(map[string]any{"metadata": map[string]any{"name": "x"}}), nil)
		require.NoError(t, err)
	}
	fromPath, _, err := dry.ForPath(t.Context(), "/api/v1/namespaces/shop/pods")
	require.NoError(t, err)
	_, err = fromPath.Create(t.Context(), kindless(map[string]any{}), nil)
	require.NoError(t, err)
	const pod, node = ` application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`, ` application/json {"apiVersion":"v1","kind":"Node","metadata":{"name":"x"}}`
	assert.Equal(t, []string{
		`POST /api/v1/namespaces/stage/pods?dryRun=All&fieldManager=app` + pod,
		`POST /api/v1/namespaces/other/pods?dryRun=All&fieldManager=handle` + pod,
		`POST /api/v1/namespaces/shop/pods?dryRun=All&fieldManager=app` + pod,
		`POST /api/v1/namespaces/stage/pods?dryRun=All&fieldManager=app` + pod,
		`POST /api/v1/namespaces/stage/pods?fieldManager=app` + pod,
		`POST /api/v1/namespaces/home/pods` + pod,
		`POST /api/v1/nodes?dryRun=All&fieldManager=app` + node,
		`POST /api/v1/pods?dryRun=All&fieldManager=app application/json {"metadata":{"name":"x"}}`,
		`POST /api/v1/namespaces/stage/pods?dryRun=All&fieldManager=app` + pod,
		`POST /api/v1/namespaces/shop/pods?dryRun=All&fieldManager=app application/json {"apiVersion":"v1","kind":"Pod"}`,
	}, server.seen())
}

func TestDefaults_OnWarning(t *testing.T) {
	warns := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "deprecated"`)
		fmt.Fprint(w, podReply)
	}
	pods, _ := serve(t, map[string]http.HandlerFunc{"": warns})
	var texts []string
	warned := pods.WithDefaults(&dynamic.Defaults{OnWarning: func(_ context.Context, text string) { texts = append(texts, text) }})
	for _, r := range []*dynamic.Resource{pods, warned, warned.Metadata(), warned.WithDefaults(&dynamic.Defaults{DryRun: true})} {
		_, err := r.Get(t.Context(), "web", nil)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"deprecated"}, texts)
}

// serveUsers starts a server whose objects are named after the user that a request is made as, and that lets nobody but the
// credential's own user discover what it serves. It returns the users of the discovery requests and the peers.
func serveUsers(t *testing.T) (client *dynamic.Client, discoverers, peers func() []string) {
	t.Helper()
	var mu sync.Mutex
	var discovered, connections []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		user := r.Header.Get("Impersonate-User")
		connections = append(connections, r.RemoteAddr)
		switch {
		case r.URL.Path == "/api" || r.URL.Path == "/apis":
			discovered = append(discovered, user)
			scripted.New(resources).ServeHTTP(w, r)
		case user == "eve":
			refusal := refuses(http.StatusForbidden, "Forbidden")
			w.WriteHeader(refusal.status)
			_, _ = io.WriteString(w, refusal.body)
		default:
			fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q}}`, user)
		}
	}))
	client, err := dynamic.Connect(t.Context(), &transport.Config{Server: server.URL})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, func() []string { return discovered }, func() []string { return connections }
}

func TestConnect_LoadsConfig(t *testing.T) {
	server := httptest.NewServer(scripted.New(resources))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "config")
	file := `{"clusters": [{"name": "shop", "cluster": {"server": "` + server.URL + `"}}], "users": [{"name": "ann", "user": {}}], ` +
		`"contexts": [{"name": "shop", "context": {"cluster": "shop", "user": "ann", "namespace": "shop"}}], "current-context": "shop"}`
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	t.Setenv("KUBECONFIG", path)
	client, err := dynamic.Connect(t.Context(), nil)
	require.NoError(t, err)
	defer client.Close()
	assert.Equal(t, "shop", client.Conn().Namespace())
	t.Setenv("KUBECONFIG", path+".missing")
	_, err = dynamic.Connect(t.Context(), nil)
	require.ErrorContains(t, err, "find a cluster to connect to: KUBECONFIG=")
}

func TestClient_Impersonate(t *testing.T) {
	client, discoverers, peers := serveUsers(t)
	for _, user := range []string{"ann", "bob", "eve"} {
		impersonated, err := client.Impersonate(transport.Impersonation{User: user})
		require.NoError(t, err)
		assert.Same(t, client.Discovery(), impersonated.Discovery())
		assert.Same(t, client.Mapper(), impersonated.Mapper())
		for range 2 { // the server responds to a second request, too
			web, err := resource(t, impersonated, "pods").Get(t.Context(), "web", nil)
			if user == "eve" {
				require.True(t, apierrors.IsForbidden(err), "%v", err)
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, user, web.GetName())
		}
		again, err := impersonated.Impersonate(transport.Impersonation{User: "other"})
		require.NoError(t, err)
		web, err := resource(t, again, "pods").Get(t.Context(), "web", nil)
		require.NoError(t, err)
		assert.Equal(t, "other", web.GetName())
		impersonated.Close()
	}
	web, err := resource(t, client, "pods").Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Empty(t, web.GetName())
	assert.Equal(t, []string{"", ""}, discoverers(), "discovery is done once, as the credential's own user")
	connections := slices.Compact(slices.Sorted(slices.Values(peers())))
	assert.LessOrEqual(t, len(connections), 2, "all requests share the connections that discovery may have dialed for its two requests")
	_, err = client.Impersonate(transport.Impersonation{Groups: []string{"system:masters"}})
	require.EqualError(t, err, "impersonate: the user is missing")
}

// TestClient_ImpersonateMemory bounds what a client of another user costs, with a user and groups as an OpenID Connect
// provider has them.
func TestClient_ImpersonateMemory(t *testing.T) {
	client, _ := script(t)
	user := transport.Impersonation{User: "jane@example.com", Groups: []string{"oidc:developers", "oidc:shop", "system:authenticated"}}
	const runs = 1000
	kept := make([]*dynamic.Client, runs)
	lowest := uint64(1 << 30)
	for range 5 { // other goroutines may allocate, too
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range kept {
			kept[i], _ = client.Impersonate(user)
		}
		runtime.ReadMemStats(&after)
		lowest = min(lowest, (after.TotalAlloc-before.TotalAlloc)/runs)
	}
	require.NotNil(t, kept[runs-1])
	t.Logf("%d bytes, all allocations included", lowest)
	assert.Less(t, lowest, uint64(2<<10))
}
