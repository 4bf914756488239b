package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/unstructured"
)

const served = `
	/v1 configmaps configmap ConfigMap
	/v1 endpoints endpoints Endpoints
	/v1 events event Event
	cluster /v1 namespaces namespace Namespace
	cluster /v1 componentstatuses componentstatus ComponentStatus - - get,list
	discovery.k8s.io/v1 endpointslices endpointslice EndpointSlice
	events.k8s.io/v1 events event Event
	cluster authorization.k8s.io/v1 selfsubjectrulesreviews selfsubjectrulesreview SelfSubjectRulesReview - - create
	metrics.k8s.io/v1beta1 pods pod PodMetrics - - get,list
	shop.example/v1 carts cart Cart
	store.example/v1 carts cart Cart
`

// objects responds with a list of objects in NAMESPACE/NAME/UID form.
func objects(apiVersion, kind string, all ...string) http.HandlerFunc {
	items := make([]string, len(all))
	for i, object := range all {
		fields := strings.Split(object, "/")
		items[i] = fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"uid":%q}}`,
			apiVersion, kind, fields[0], fields[1], fields[2])
	}
	return scripted.JSON(fmt.Sprintf(`{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"5"},"items":[%s]}`,
		apiVersion, kind, strings.Join(items, ",")))
}

func newServer() *scripted.Server {
	server := scripted.New(served)
	server.Handle("GET /api/v1/configmaps", objects("v1", "ConfigMap", "a/one/1", "b/two/2"))
	server.Handle("GET /api/v1/endpoints", objects("v1", "Endpoints", "a/web/3"))
	server.Handle("GET /api/v1/events", objects("v1", "Event", "a/started/4"))
	server.Handle("GET /api/v1/namespaces", objects("v1", "Namespace", "/a/5", "/b/6"))
	server.Handle("GET /api/v1/componentstatuses", objects("v1", "ComponentStatus", "/etcd/"))
	server.Handle("GET /apis/discovery.k8s.io/v1/endpointslices", objects("discovery.k8s.io/v1", "EndpointSlice", "a/web-1/7"))
	server.Handle("GET /apis/events.k8s.io/v1/events", objects("events.k8s.io/v1", "Event", "a/started/4"))
	server.Handle("GET /apis/metrics.k8s.io/v1beta1/pods", objects("metrics.k8s.io/v1beta1", "PodMetrics", "a/web/"))
	server.Handle("GET /apis/shop.example/v1/carts", objects("shop.example/v1", "Cart", "a/full/8"))
	server.Handle("GET /apis/store.example/v1/carts", objects("store.example/v1", "Cart", "a/full/8", "a/empty/9"))
	return server
}

// collect returns the objects in the form GROUP/RESOURCE NAMESPACE/NAME, and the error.
func collect(ctx context.Context, client *dynamic.Client, opts *inventory.ListOptions) (found []string, last error) {
	for item, err := range inventory.List[unstructured.Lazy](ctx, client, opts) {
		if err != nil {
			last = err
			continue
		}
		resource := item.Resource.APIResource().GVR.GroupResource()
		found = append(found, resource.String()+" "+item.Object.GetNamespace()+"/"+item.Object.GetName())
	}
	slices.Sort(found)
	return found, last
}

func connect(t testing.TB, server http.Handler) *dynamic.Client {
	t.Helper()
	client := dynamic.New(scripted.Connect(t, server, nil), nil)
	t.Cleanup(client.Close)
	return client
}

func TestList_EachObjectOnce(t *testing.T) {
	all := []string{
		"carts.shop.example a/full", "carts.store.example a/empty", "configmaps a/one", "configmaps b/two",
		"endpointslices.discovery.k8s.io a/web-1", "events a/started", "namespaces /a", "namespaces /b",
	}
	virtual := []string{"componentstatuses /etcd", "endpoints a/web", "pods.metrics.k8s.io a/web"}
	for name, test := range map[string]struct {
		opts *inventory.ListOptions
		want []string
	}{
		"all":       {nil, all},
		"virtual":   {&inventory.ListOptions{IncludeVirtual: true}, append(slices.Clone(virtual), all...)},
		"one group": {&inventory.ListOptions{Resources: &discovery.ResourceFilter{Groups: []string{"events.k8s.io"}}}, []string{"events.events.k8s.io a/started"}},
		"selected": {&inventory.ListOptions{Select: func(r *discovery.Resource) bool {
			return r.GVK.Kind == "Namespace"
		}}, []string{"namespaces /a", "namespaces /b"}},
		"endpoints alone": {&inventory.ListOptions{Select: func(r *discovery.Resource) bool {
			return r.GVK.Kind == "Endpoints"
		}}, []string{"endpoints a/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := collect(t.Context(), connect(t, newServer()), test.opts)
			require.NoError(t, err)
			slices.Sort(test.want)
			assert.Equal(t, test.want, found)
		})
	}
}

func TestList_NamespaceNamedTwice(t *testing.T) {
	server := scripted.New("/v1 configmaps configmap ConfigMap")
	server.Handle("GET /api/v1/namespaces/a/configmaps", objects("v1", "ConfigMap", "a/one/1"))
	found, err := collect(t.Context(), connect(t, server), &inventory.ListOptions{Namespaces: []string{"a", "a"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"configmaps a/one"}, found)
}

func TestList_ReportsWhatIsMissing(t *testing.T) {
	server := newServer()
	server.Serve(served + "\n stale metrics.example/v1")
	server.Handle("GET /apis/shop.example/v1/carts", scripted.Status(http.StatusMethodNotAllowed, "MethodNotAllowed"))
	server.Handle("GET /apis/discovery.k8s.io/v1/endpointslices", scripted.NotServed) // deleted since discovery
	server.Handle("GET /api/v1/namespaces", scripted.Status(http.StatusForbidden, "Forbidden"))
	found, err := collect(t.Context(), connect(t, server), nil)
	assert.Equal(t, []string{"carts.store.example a/empty", "carts.store.example a/full", "configmaps a/one", "configmaps b/two", "events a/started"}, found)
	var incomplete *inventory.IncompleteError
	require.ErrorAs(t, err, &incomplete)
	require.Len(t, incomplete.Resources, 3)
	assert.Equal(t, "namespaces", incomplete.Resources[0].Resource)
	assert.True(t, apierrors.IsForbidden(incomplete.Resources[0]))
	assert.Equal(t, "metrics.example", incomplete.Resources[1].Group)
	assert.Empty(t, incomplete.Resources[1].Resource)
	assert.Equal(t, "carts", incomplete.Resources[2].Resource)
	assert.True(t, apierrors.IsMethodNotSupported(incomplete.Resources[2]))
	assert.ErrorContains(t, err, "list all resources: 3 could not be listed: v1, namespaces: ")
}

const rulesReviews = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews"

// rulesOf responds to a SelfSubjectRulesReview with the status of its namespace.
func rulesOf(t *testing.T, statuses map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var namespace string
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		if review, err := unstructured.Decode(body); assert.NoError(t, err) {
			namespace, _, _ = unstructured.Get[string](review, "spec", "namespace")
		}
		review(statuses[namespace])(w, r)
	}
}

// A user may list configmaps in a, everything in b, and nothing in c.
func TestList_NamespacesOneByOne(t *testing.T) {
	limited := func() *scripted.Server {
		server := scripted.New(served)
		server.Handle("", scripted.Status(http.StatusForbidden, "Forbidden"))
		server.Handle("GET /api/v1/namespaces/a/configmaps", objects("v1", "ConfigMap", "a/one/1"))
		server.Handle("GET /api/v1/namespaces/b/configmaps", objects("v1", "ConfigMap", "b/two/2"))
		server.Handle("GET /apis/shop.example/v1/namespaces/b/carts", objects("shop.example/v1", "Cart", "b/full/3"))
		server.Handle(rulesReviews, rulesOf(t, map[string]string{
			"a": `{"resourceRules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["configmaps"]},{"verbs":["list"],"apiGroups":["*"],"resources":["*"],"resourceNames":["x"]}]}`,
			"b": `{"resourceRules":[],"incomplete":true}`,
			"c": `{"resourceRules":[]}`,
		}))
		return server
	}
	want := []string{"carts.shop.example b/full", "configmaps a/one", "configmaps b/two"}

	t.Run("listed", func(t *testing.T) {
		server := limited()
		server.Handle("GET /api/v1/namespaces", objects("v1", "Namespace", "/a/5", "/b/6", "/c/7"))
		found, err := collect(t.Context(), connect(t, server), nil)
		assert.Equal(t, append(slices.Clone(want), "namespaces /a", "namespaces /b", "namespaces /c"), found)
		var incomplete *inventory.IncompleteError
		require.ErrorAs(t, err, &incomplete)
		assert.Equal(t, "configmaps", incomplete.Resources[0].Resource)
		assert.Equal(t, []string{"a", "b"}, incomplete.Resources[0].Namespaces)
		assert.True(t, apierrors.IsForbidden(incomplete.Resources[0]))
		assert.ErrorContains(t, err, "the user may not list it in 1 of 3 namespaces")
	})
	t.Run("named", func(t *testing.T) {
		server := limited()
		found, err := collect(t.Context(), connect(t, server), &inventory.ListOptions{Namespaces: []string{"a", "b"}, Workers: 1})
		assert.Equal(t, want, found)
		assert.True(t, apierrors.IsForbidden(err))
		tried := 0
		for _, request := range server.Requests() {
			if request.Method == http.MethodGet {
				assert.Contains(t, request.URI, "/namespaces/", "nothing is requested in all namespaces")
			}
			if strings.Contains(request.URI, "namespaces/a/") {
				tried++
			}
		}
		assert.Equal(t, 2, tried, "the list of configmaps, and the list that was denied and made the lister read the rules")
	})
	t.Run("unknown", func(t *testing.T) {
		_, err := collect(t.Context(), connect(t, limited()), nil)
		assert.ErrorContains(t, err, "ListOptions.Namespaces names them")
		assert.True(t, apierrors.IsForbidden(err))
	})
}

func TestList_LeftEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.Handle("GET /apis/shop.example/v1/carts", scripted.Hang)
		client := connect(t, server)
		count := 0
		for _, err := range inventory.List[unstructured.Object](t.Context(), client, nil) {
			require.NoError(t, err)
			count++
			break
		}
		assert.Equal(t, 1, count)

		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		cause := errors.New("the user left")
		count = 0
		var last error
		for _, err := range inventory.List[unstructured.Object](ctx, client, &inventory.ListOptions{Workers: 1}) {
			if count++; count == 2 {
				cancel(cause)
			}
			last = err
		}
		assert.ErrorIs(t, last, cause)
		assert.ErrorIs(t, last, context.Canceled)
		client.Close()
	})
}
