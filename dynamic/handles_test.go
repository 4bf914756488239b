package dynamic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// checkRequests compares the request of each call with its name.
func checkRequests(t *testing.T, calls map[string]func(*testing.T, *dynamic.Client) error) {
	t.Helper()
	for want, call := range calls {
		t.Run(want, func(t *testing.T) {
			reply := podReply
			switch path, _, _ := strings.Cut(want, " application/"); {
			case strings.HasSuffix(path, "watch=true"):
				reply = ""
			case strings.Contains(path, "limit=") || strings.HasPrefix(path, "DELETE ") && strings.HasSuffix(path, "/pods"):
				reply = listReply
			}
			client, server := script(t, reply)
			require.NoError(t, call(t, client))
			assert.Equal(t, []string{want}, server.seen())
		})
	}
}

// kindless returns an object that has only fields other than apiVersion, kind and metadata.
func kindless(fields map[string]any) *unstructured.Object {
	return &unstructured.Object{Object: fields}
}

func TestClient_ForGVRRequests(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	widgets := schema.GroupVersionResource{Group: "acme.example", Version: "v9", Resource: "widgets"}
	checkRequests(t, map[string]func(*testing.T, *dynamic.Client) error{
		`GET /apis/acme.example/v9/widgets/web`: func(t *testing.T, c *dynamic.Client) error {
			_, err := c.ForGVR(widgets).Get(t.Context(), "web", nil)
			return err
		},
		`GET /apis/acme.example/v9/namespaces/shop/widgets/web/knobs`: func(t *testing.T, c *dynamic.Client) error {
			_, err := c.ForGVR(widgets).Namespace("shop").Subresource("knobs").Get(t.Context(), "web", nil)
			return err
		},
		`GET /api/v1/pods?limit=500`: func(t *testing.T, c *dynamic.Client) error {
			return drain(c.ForGVR(pods).List(t.Context(), nil))
		},
		`GET /api/v1/pods?watch=true`: func(t *testing.T, c *dynamic.Client) error {
			return drain(c.ForGVR(pods).AllNamespaces().Watch(t.Context(), nil))
		},
		`POST /apis/acme.example/v9/namespaces/shop/widgets application/json {"apiVersion":"acme.example/v9","kind":"Widget","metadata":{"name":"web","namespace":"shop"}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := c.ForGVR(widgets).Create(t.Context(), &unstructured.Object{Object: map[string]any{
				"apiVersion": "acme.example/v9", "kind": "Widget", "metadata": map[string]any{"name": "web", "namespace": "shop"}}}, nil)
			return err
		},
		`PUT /apis/acme.example/v9/widgets/web application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := c.ForGVR(widgets).Update(t.Context(), object("Pod", "web"), nil)
			return err
		},
		`DELETE /api/v1/namespaces/shop/pods/web`: func(t *testing.T, c *dynamic.Client) error {
			_, err := c.ForGVR(pods).Namespace("shop").Delete(t.Context(), "web", nil)
			return err
		},
		`DELETE /api/v1/pods`: func(t *testing.T, c *dynamic.Client) error {
			_, err := c.ForGVR(pods).DeleteCollection(t.Context(), nil, nil)
			return err
		},
	})
}

func TestClient_ForGVRSendsNoRequest(t *testing.T) {
	conn, err := transport.New("http://127.0.0.1:1", nil, &transport.Options{Namespace: "home"})
	require.NoError(t, err)
	client := dynamic.New(conn, nil)
	defer client.Close()
	gvr := schema.GroupVersionResource{Group: "acme.example", Version: "v9", Resource: "widgets"}
	widgets := client.ForGVR(gvr)
	assert.Equal(t, &discovery.Resource{GVR: gvr}, widgets.APIResource())
	assert.Equal(t, "widgets.acme.example", widgets.String())
	path, err := widgets.WithDefaults(&dynamic.Defaults{Namespace: "shop"}).Path("")
	require.NoError(t, err)
	assert.Equal(t, "/apis/acme.example/v9/widgets", path)
	_, err = widgets.Path("../x")
	var invalid *dynamic.InvalidRequestError
	require.ErrorAs(t, err, &invalid, "an invalid path is rejected all the same")
	assert.Nil(t, client.Discovery().Latest())
}

func TestClient_ForGVRMetadataKeepsKind(t *testing.T) {
	client, _ := script(t, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web"}}`)
	web, err := client.ForGVR(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Metadata().Get(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.Equal(t, "PartialObjectMetadata", web.GetKind())
}

func TestClient_ForAPIResource(t *testing.T) {
	client, server := script(t, podReply)
	found, err := client.Mapper().Resource(t.Context(), "po")
	require.NoError(t, err)
	pods := client.ForAPIResource(found)
	_, err = pods.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	_, err = pods.Subresource("scale").Get(t.Context(), "web", nil)
	require.ErrorContains(t, err, "the server serves no such subresource")

	own := client.ForAPIResource(&discovery.Resource{
		GVR: schema.GroupVersionResource{Group: "acme.example", Version: "v1", Resource: "widgets"},
		GVK: schema.GroupVersionKind{Group: "acme.example", Version: "v1", Kind: "Widget"}, Namespaced: true,
	})
	_, err = own.Subresource("knobs").Get(t.Context(), "web", nil)
	require.NoError(t, err)
	_, err = own.Create(t.Context(), object("Pod", "web"), nil)
	require.ErrorContains(t, err, "the object is a /v1, Kind=Pod, not a acme.example/v1, Kind=Widget")
	assert.Equal(t, []string{"GET /api/v1/namespaces/home/pods/web", "GET /apis/acme.example/v1/namespaces/home/widgets/web/knobs"}, server.seen())

	_, err = client.ForAPIResource(nil).Get(t.Context(), "web", nil)
	var invalid *dynamic.InvalidRequestError
	require.ErrorAs(t, err, &invalid)
}

func TestResource_NamedRequests(t *testing.T) {
	checkRequests(t, map[string]func(*testing.T, *dynamic.Client) error{
		`GET /api/v1/namespaces/home/pods?fieldSelector=metadata.name%3Dweb&watch=true`: func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").Named("web").Watch(t.Context(), nil))
		},
		`GET /api/v1/namespaces/home/pods?fieldSelector=spec.nodeName%3Dn1%2Cmetadata.name%3Dweb&limit=1`: func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").Named("web").List(t.Context(), &metav1.ListOptions{FieldSelector: "spec.nodeName=n1", Limit: 1}))
		},
		`GET /api/v1/namespaces/home/pods?limit=500`: func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").Named("web").Named("").List(t.Context(), nil))
		},
		`GET /api/v1/nodes?fieldSelector=metadata.name%3Da%5C%2Cb%5C%3Dc&limit=500`: func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "nodes").Named("a,b=c").List(t.Context(), nil))
		},
		`GET /api/v1/namespaces/home/pods/web`: func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Named("web").Get(t.Context(), "web", nil)
			return err
		},
		`POST /api/v1/namespaces/home/pods application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Named("web").Create(t.Context(), object("Pod", "web"), nil)
			return err
		},
		`POST /api/v1/namespaces/home/serviceaccounts/robot/token application/json {"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "sa").Named("robot").Subresource("token").Create(t.Context(), kindless(map[string]any{"spec": map[string]any{}}), nil)
			return err
		},
		`POST /api/v1/namespaces/home/pods/web/eviction application/json {"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"other"}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Named("web").Subresource("eviction").Create(t.Context(), object("Eviction", "other"), nil)
			return err
		},
		`POST /api/v1/namespaces/home/pods/web/binding application/json {"apiVersion":"v1","kind":"Binding","metadata":{"name":"web"},"target":{"kind":"Node","name":"n1"}}`: func(t *testing.T, c *dynamic.Client) error {
			binding := object("Binding", "web")
			binding.SetAPIVersion("v1")
			binding.Object["target"] = map[string]any{"kind": "Node", "name": "n1"}
			_, err := c.ForGVR(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("home").Named("web").
				Subresource("binding").Create(t.Context(), binding, nil)
			return err
		},
		`PUT /apis/apps/v1/namespaces/home/deployments/web/scale application/json {"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "deploy").Named("web").Subresource("scale").Update(t.Context(), scaleTo(3), nil)
			return err
		},
		`PATCH /apis/apps/v1/namespaces/home/deployments/web/scale?fieldManager=me&force=true application/apply-patch+yaml {"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3}}`: func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "deploy").Named("web").Subresource("scale").Apply(t.Context(), scaleTo(3), &metav1.ApplyOptions{FieldManager: "me", Force: true})
			return err
		},
		`PUT /apis/apps/v1/namespaces/shop/deployments/web/scale application/json {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"creationTimestamp":null},"spec":{"replicas":2}}`: func(t *testing.T, c *dynamic.Client) error {
			type scale struct {
				metav1.TypeMeta `json:",inline"`
				Metadata        struct {
					CreationTimestamp *metav1.Time `json:"creationTimestamp"`
				} `json:"metadata"`
				Spec struct {
					Replicas int `json:"replicas"`
				} `json:"spec"`
			}
			two := &scale{}
			two.Spec.Replicas = 2
			_, err := dynamic.As[scale](resource(t, c, "deploy")).Namespace("shop").Named("web").Subresource("scale").Update(t.Context(), two, nil)
			return err
		},
	})
}

func scaleTo(replicas int64) *unstructured.Object {
	return kindless(map[string]any{"spec": map[string]any{"replicas": replicas}})
}

func TestResource_NamedRejectsOtherNames(t *testing.T) {
	client, server := script(t, podReply)
	pods := resource(t, client, "pods").Named("web")
	for want, call := range map[string]func() error{
		`get pods "db": name mismatch: call has "db", handle has "web"`: func() error { _, err := pods.Get(t.Context(), "db", nil); return err },
		`delete pods "db": name mismatch: call has "db", handle has "web"`: func() error {
			_, err := pods.Delete(t.Context(), "db", nil)
			return err
		},
		`get pods: the name is empty`: func() error { _, err := pods.Wait(t.Context(), "", dynamic.Exists()); return err },
		`create pods "db": name mismatch: object has "db", handle has "web"`: func() error {
			_, err := pods.Create(t.Context(), object("Pod", "db"), nil)
			return err
		},
		`update pods "db": name mismatch: object has "db", handle has "web"`: func() error {
			_, err := pods.Update(t.Context(), object("Pod", "db"), nil)
			return err
		},
		`create pods: name mismatch: object has "", handle has "web"`: func() error {
			_, err := pods.Create(t.Context(), kindless(map[string]any{}), nil)
			return err
		},
		`list pods "a/b": the name may not contain '/'`: func() error { return drain(pods.Named("a/b").List(t.Context(), nil)) },
	} {
		var invalid *dynamic.InvalidRequestError
		err := call()
		require.ErrorAs(t, err, &invalid, want)
		assert.EqualError(t, err, want)
	}
	assert.Empty(t, server.seen())
}
