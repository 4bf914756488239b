package dynamic_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	coreIndex = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
		{"resource":"namespaces","responseKind":{"version":"v1","kind":"Namespace"},"scope":"Cluster","singularResource":"namespace","shortNames":["ns"],
		 "verbs":["create","delete","get","list","patch","update","watch"],
		 "subresources":[{"subresource":"finalize","responseKind":{"version":"v1","kind":"Namespace"},"verbs":["update"]}]},
		{"resource":"nodes","responseKind":{"version":"v1","kind":"Node"},"scope":"Cluster","singularResource":"node","verbs":["get","list","create"]},
		{"resource":"bindings","responseKind":{"version":"v1","kind":"Binding"},"scope":"Namespaced","singularResource":"binding","verbs":["create"]},
		{"resource":"serviceaccounts","responseKind":{"version":"v1","kind":"ServiceAccount"},"scope":"Namespaced","singularResource":"serviceaccount","shortNames":["sa"],
		 "verbs":["create","get"],
		 "subresources":[{"subresource":"token","responseKind":{"group":"authentication.k8s.io","version":"v1","kind":"TokenRequest"},"verbs":["create"]}]},
		{"resource":"pods","responseKind":{"version":"v1","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","shortNames":["po"],
		 "verbs":["create","delete","deletecollection","get","list","patch","update","watch"],
		 "subresources":[{"subresource":"status","responseKind":{"version":"v1","kind":"Pod"},"verbs":["get","patch","update"]},
			{"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]}]}]}]}]}`
	appsIndex = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
		{"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","shortNames":["deploy"],
		 "verbs":["create","delete","get","list","patch","update","watch"],
		 "subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]}]}]}]}]}`
)

// wire is a scripted server: it answers discovery, records every other request and answers it with replies in turn,
// the last one again and again.
type wire struct {
	mu       sync.Mutex
	requests []string
	replies  []string
}

func (s *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api", "/apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = io.WriteString(w, map[string]string{"/api": coreIndex, "/apis": appsIndex}[r.URL.Path])
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+r.Header.Get("Content-Type")+" "+string(body)))
	if len(s.replies) > 0 {
		_, _ = io.WriteString(w, s.replies[0])
		if len(s.replies) > 1 {
			s.replies = s.replies[1:]
		}
	}
}

func (s *wire) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// script gives a client of a scripted server; its default namespace is "home".
func script(t *testing.T, replies ...string) (*dynamic.Client, *wire) {
	t.Helper()
	server := &wire{replies: replies}
	listening := httptest.NewServer(server)
	client, err := dynamic.Connect(t.Context(), &transport.Config{Server: listening.URL, Options: transport.Options{Namespace: "home"}})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); listening.Close() })
	return client, server
}

func resource(t *testing.T, client *dynamic.Client, name string) *dynamic.Resource {
	t.Helper()
	found, err := client.Resource(t.Context(), name)
	require.NoError(t, err)
	return found
}

func object(kind, name string) *unstructured.Object {
	apiVersion := map[string]string{"Pod": "v1", "Node": "v1", "Deployment": "apps/v1", "Eviction": "policy/v1", "Scale": "autoscaling/v1"}[kind]
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name},
	}}
}

func in(namespace string, obj *unstructured.Object) *unstructured.Object {
	obj.SetNamespace(namespace)
	return obj
}

const (
	podReply   = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"7"}}`
	tokenReply = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"s3cret","expirationTimestamp":"2026-01-02T03:04:05Z"}}`
	listReply  = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"web"}}]}`
)

// TestEveryVerbIsOneRequest holds the exact request of each verb: method, path, query, content type and body.
func TestEveryVerbIsOneRequest(t *testing.T) {
	type call func(*testing.T, *dynamic.Client) error
	yes, limit := true, int64(1)
	for want, tc := range map[string]struct {
		reply string
		call  call
	}{
		`GET /api/v1/namespaces/home/pods/web`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "po").Get(t.Context(), "web", nil)
			return err
		}},
		`GET /api/v1/namespaces/shop/pods/web/status?resourceVersion=0`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").In("shop").Sub("status").Get(t.Context(), "web", &metav1.GetOptions{
				TypeMeta: metav1.TypeMeta{Kind: "Stray"}, ResourceVersion: "0"})
			return err
		}},
		`GET /api/v1/nodes/n1`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").AllNamespaces().Get(t.Context(), "n1", nil)
			return err
		}},
		`GET /apis/apps/v1/namespaces/home/deployments?labelSelector=app%3Dweb&limit=1&resourceVersion=5&resourceVersionMatch=NotOlderThan`: {listReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "deploy").ListPage(t.Context(), &metav1.ListOptions{
				LabelSelector: "app=web", Limit: limit, ResourceVersion: "5", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
			return err
		}},
		`GET /api/v1/pods`: {listReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").AllNamespaces().ListPage(t.Context(), nil)
			return err
		}},
		`GET /api/v1/pods?limit=500`: {listReply, func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").AllNamespaces().List(t.Context(), nil))
		}},
		`GET /api/v1/namespaces/home/pods?fieldSelector=metadata.name%3Dweb&resourceVersion=9&watch=true`: {"", func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").Watch(t.Context(), &metav1.ListOptions{FieldSelector: "metadata.name=web", ResourceVersion: "9"}))
		}},
		`POST /api/v1/namespaces/home/pods?dryRun=All&fieldManager=me&fieldValidation=Strict application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Create(t.Context(), object("Pod", "web"), &metav1.CreateOptions{
				DryRun: []string{"All"}, FieldManager: "me", FieldValidation: "Strict"})
			return err
		}},
		`POST /api/v1/namespaces/shop/pods application/json {"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-","namespace":"shop"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").AllNamespaces().Create(t.Context(), &unstructured.Object{Object: map[string]any{
				"metadata": map[string]any{"generateName": "web-", "namespace": "shop"}}}, nil)
			return err
		}},
		`POST /api/v1/namespaces/home/pods/web/eviction application/json {"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Sub("eviction").Create(t.Context(), &unstructured.Object{Object: map[string]any{
				"metadata": map[string]any{"name": "web"}}}, nil)
			return err
		}},
		`PUT /api/v1/namespaces/shop/pods/web application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Update(t.Context(), in("shop", object("Pod", "web")), nil)
			return err
		}},
		`PUT /apis/apps/v1/namespaces/home/deployments/web/scale application/json {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "deploy").Sub("scale").Update(t.Context(), object("Scale", "web"), nil)
			return err
		}},
		`PATCH /api/v1/namespaces/home/pods/web application/merge-patch+json {"a":null}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"a":null}`), nil)
			return err
		}},
		`PATCH /api/v1/namespaces/home/pods/web/status?force=true application/json-patch+json []`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Sub("status").Patch(t.Context(), "web", types.JSONPatchType, []byte(`[]`), &metav1.PatchOptions{Force: &yes})
			return err
		}},
		`PATCH /api/v1/namespaces/home/pods/web?fieldManager=me&force=true application/apply-patch+yaml {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Apply(t.Context(), object("Pod", "web"), &metav1.ApplyOptions{FieldManager: "me", Force: true})
			return err
		}},
		`DELETE /api/v1/namespaces/home/pods/web`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Delete(t.Context(), "web", nil)
			return err
		}},
		`DELETE /api/v1/namespaces/home/pods/web application/json {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"7"},"propagationPolicy":"Foreground"}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			version, foreground := "7", metav1.DeletePropagationForeground
			_, err := resource(t, c, "pods").Delete(t.Context(), "web", &metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{ResourceVersion: &version}, PropagationPolicy: &foreground})
			return err
		}},
		`DELETE /api/v1/namespaces/home/pods`: {listReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").DeleteCollection(t.Context(), nil, nil)
			return err
		}},
		`DELETE /api/v1/namespaces/shop/pods?fieldSelector=status.phase%3DFailed&labelSelector=app%3Dweb&limit=5 application/json {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`: {listReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").In("shop").DeleteCollection(t.Context(), &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
				&metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "status.phase=Failed", Limit: 5})
			return err
		}},
		`PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale?dryRun=All application/merge-patch+json {"spec":{"replicas":3}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "deploy").In("shop").Scale(t.Context(), "web", 3, &metav1.PatchOptions{DryRun: []string{"All"}})
			return err
		}},
		`POST /api/v1/namespaces/shop/pods/web/eviction application/json {"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"web"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			return resource(t, c, "pods").In("shop").Evict(t.Context(), "web", nil)
		}},
		`POST /api/v1/namespaces/home/pods/web/eviction?dryRun=All application/json {"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"web"},"deleteOptions":{"gracePeriodSeconds":5,"dryRun":["All"]}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			return resource(t, c, "pods").Evict(t.Context(), "web", &dynamic.EvictOptions{Retry: true,
				DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(5)), DryRun: []string{"All"}}})
		}},
		`POST /api/v1/namespaces/home/serviceaccounts/robot/token application/json {"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`: {tokenReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "sa").CreateToken(t.Context(), "robot", nil)
			return err
		}},
		`POST /api/v1/namespaces/shop/serviceaccounts/robot/token application/json {"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":` +
			`{"audiences":["vault","shop"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"web","uid":"u"},"expirationSeconds":3600}}`: {tokenReply, func(t *testing.T, c *dynamic.Client) error {
			web := object("Pod", "web")
			web.SetUID("u")
			_, err := resource(t, c, "sa").In("shop").CreateToken(t.Context(), "robot", &dynamic.TokenOptions{
				Audiences: []string{"vault", "shop"}, Lifetime: time.Hour, BoundTo: web})
			return err
		}},
		`GET /apis/apps/v1/namespaces/shop/deployments/a%20b%3Fc`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "Deployment.v1.apps").In("shop").Get(t.Context(), "a b?c", nil)
			return err
		}},
	} {
		t.Run(want, func(t *testing.T) {
			client, server := script(t, tc.reply)
			require.NoError(t, tc.call(t, client))
			assert.Equal(t, []string{want}, server.seen())
		})
	}
}

// drain ranges to the end and returns the error that ended it.
func drain[T any](all func(func(T, error) bool)) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestACallThatCannotWorkIsRefusedBeforeARequestLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		call func(*testing.T, *dynamic.Client) error
		says string
	}{
		"an empty name":       {get("pods", ""), `get pods: the name is empty`},
		"a name with a slash": {get("pods", "a/b"), `get pods "a/b": the name may not contain '/'`},
		"an escaping name":    {get("pods", ".."), `may not be '..'`},
		"an escaped name":     {get("pods", "%2e%2e"), `may not contain '%'`},
		"a control character": {get("pods", "a\nb"), `contains a control character`},
		"a verb it lacks":     {get("bindings", "x"), `get bindings "x": the server does not support the verb (it has: create)`},
		"a verb nodes lack": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").Delete(t.Context(), "n", nil)
			return err
		}, "(it has: get, list, create)"},
		"a namespace on a cluster-scoped kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").In("shop").Get(t.Context(), "n", nil)
			return err
		}, `Node is cluster-scoped and in no namespace: leave In("shop") out`},
		"a namespaced object of a cluster-scoped kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").Create(t.Context(), in("shop", object("Node", "n")), nil)
			return err
		}, `the object names the namespace "shop": remove it`},
		"an empty namespace": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").In("").List(t.Context(), nil))
		}, `the namespace "" is empty: choose one with In, or AllNamespaces`},
		"an escaping namespace": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").In("../../nodes").ListPage(t.Context(), nil)
			return err
		}, `the namespace "../../nodes" may not contain '/'`},
		"one object of all namespaces": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").AllNamespaces().Get(t.Context(), "web", nil)
			return err
		}, "one object needs a namespace: choose it with In"},
		"a new object of no namespace": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").AllNamespaces().Create(t.Context(), object("Pod", "web"), nil)
			return err
		}, "choose one with In"},
		"two namespaces": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").In("shop").Update(t.Context(), in("home", object("Pod", "web")), nil)
			return err
		}, `the object names the namespace "home", the handle "shop"`},
		"an object of another kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Create(t.Context(), object("Deployment", "web"), nil)
			return err
		}, "the object is a apps/v1, Kind=Deployment, not a /v1, Kind=Pod"},
		"a subresource's object of the resource's kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "deploy").Sub("scale").Update(t.Context(), object("Deployment", "web"), nil)
			return err
		}, `update deployments.apps/scale "web": the object is a apps/v1, Kind=Deployment, but this subresource takes a autoscaling/v1, Kind=Scale`},
		"an eviction that is a pod": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Sub("eviction").Create(t.Context(), object("Pod", "web"), nil)
			return err
		}, "but this subresource takes a policy/v1, Kind=Eviction"},
		"an applied status of another kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Sub("status").Apply(t.Context(), object("Scale", "web"), &metav1.ApplyOptions{FieldManager: "me"})
			return err
		}, "but this subresource takes a /v1, Kind=Pod"},
		"an eviction in another namespace": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").In("shop").Sub("eviction").Create(t.Context(), in("home", object("Eviction", "web")), nil)
			return err
		}, `the object names the namespace "home", the handle "shop"`},
		"an eviction of nothing": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Sub("eviction").Create(t.Context(), object("Eviction", ""), nil)
			return err
		}, "the name is empty"},
		"a scale of what has none": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Scale(t.Context(), "web", 1, nil)
			return err
		}, `patch pods/scale "web": the server serves no such subresource (there are: status, eviction)`},
		"an eviction of what is no pod": {func(t *testing.T, c *dynamic.Client) error {
			return resource(t, c, "deploy").Evict(t.Context(), "web", nil)
		}, `create deployments.apps/eviction "web": the server serves no such subresource (there are: scale)`},
		"a pod of no namespace to evict": {func(t *testing.T, c *dynamic.Client) error {
			return resource(t, c, "pods").AllNamespaces().Evict(t.Context(), "web", nil)
		}, "one object needs a namespace"},
		"a token of what is no service account": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").CreateToken(t.Context(), "n1", nil)
			return err
		}, `create nodes/token "n1": the server serves no such subresource (there are: none)`},
		"no object": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Create(t.Context(), nil, nil)
			return err
		}, "the object is nil"},
		"an object without a name": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Update(t.Context(), object("Pod", ""), nil)
			return err
		}, "the name is empty"},
		"an unknown subresource": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Sub("scale").Get(t.Context(), "web", nil)
			return err
		}, `get pods/scale "web": the server serves no such subresource (there are: status, eviction)`},
		"a subresource of a resource that has none": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").Sub("status").Get(t.Context(), "n", nil)
			return err
		}, "(there are: none)"},
		"a verb its subresource lacks": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Sub("status").Delete(t.Context(), "web", nil)
			return err
		}, "(it has: get, patch, update)"},
		"a collection of subresources": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").Sub("status").Watch(t.Context(), nil))
		}, "leave Sub out"},
		"a list that watches": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").List(t.Context(), &metav1.ListOptions{Watch: true}))
		}, "call Watch"},
		"a deletion that watches": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").DeleteCollection(t.Context(), nil, &metav1.ListOptions{Watch: true})
			return err
		}, "deletecollection pods: ListOptions.Watch is set"},
		"a deletion in all namespaces": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").AllNamespaces().DeleteCollection(t.Context(), nil, nil)
			return err
		}, "deletecollection pods: the API deletes the collection of one namespace only: call it once for each"},
		"a deletion of all that the server deletes one by one": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "namespaces").DeleteCollection(t.Context(), nil, nil)
			return err
		}, "deletecollection namespaces: the server does not support the verb"},
		"a list by labels that cannot be": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").List(t.Context(), &metav1.ListOptions{LabelSelector: "app in web"}))
		}, `list pods: the label selector "app in web" cannot be parsed: unable to parse requirement: found 'web' expected: '('`},
		"a page by fields that cannot be": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").ListPage(t.Context(), &metav1.ListOptions{FieldSelector: "metadata.name"})
			return err
		}, `list pods: the field selector "metadata.name" cannot be parsed: invalid selector: 'metadata.name'; can't understand 'metadata.name'`},
		"a watch by labels that cannot be": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").Watch(t.Context(), &metav1.ListOptions{LabelSelector: "a/b/c=d"}))
		}, `watch pods: the label selector "a/b/c=d" cannot be parsed`},
		"a deletion by labels that cannot be": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").DeleteCollection(t.Context(), nil, &metav1.ListOptions{LabelSelector: "!"})
			return err
		}, `deletecollection pods: the label selector "!" cannot be parsed`},
		"an unknown patch type": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Patch(t.Context(), "web", "text/plain", []byte("{}"), nil)
			return err
		}, `the patch type "text/plain"`},
		"an empty patch": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Patch(t.Context(), "web", types.MergePatchType, nil, nil)
			return err
		}, "the patch is empty"},
		"an apply of nobody": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Apply(t.Context(), object("Pod", "web"), nil)
			return err
		}, "set ApplyOptions.FieldManager"},
		"an apply of what was read": {func(t *testing.T, c *dynamic.Client) error {
			read := object("Pod", "web")
			read.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
			_, err := resource(t, c, "pods").Apply(t.Context(), read, &metav1.ApplyOptions{FieldManager: "me"})
			return err
		}, "no metadata.managedFields"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := script(t, podReply)
			err := tc.call(t, client)
			var refused *dynamic.RefusedError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, tc.says)
			assert.Empty(t, server.seen())
		})
	}
}

func get(resourceName, name string) func(*testing.T, *dynamic.Client) error {
	return func(t *testing.T, c *dynamic.Client) error {
		_, err := resource(t, c, resourceName).Get(t.Context(), name, nil)
		return err
	}
}

func TestOfFindsTheResourceAndNamespaceOfAnObject(t *testing.T) {
	client, server := script(t, podReply)
	pods, err := client.Of(t.Context(), in("shop", object("Pod", "web")))
	require.NoError(t, err)
	_, err = pods.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	deployments, err := client.Of(t.Context(), object("Deployment", "web"))
	require.NoError(t, err)
	_, err = deployments.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"GET /api/v1/namespaces/shop/pods/web", "GET /apis/apps/v1/namespaces/home/deployments/web"}, server.seen())

	_, err = client.Kind(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v2", Kind: "Deployment"})
	require.ErrorContains(t, err, "but in v1")
	_, err = client.Of(t.Context(), nil)
	require.ErrorContains(t, err, "the object is nil")
}

func TestWritingLeavesTheCallersObjectAsItWas(t *testing.T) {
	client, _ := script(t, podReply)
	obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	before := obj.DeepCopy()
	_, err := resource(t, client, "pods").Create(t.Context(), obj, nil)
	require.NoError(t, err)
	assert.Equal(t, before, obj)
}
