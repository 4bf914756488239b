package dynamic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// TestResource_RequestOfEachVerb compares the exact request of each verb: method, path, query, content type and body.
func TestResource_RequestOfEachVerb(t *testing.T) {
	type call func(*testing.T, *dynamic.Client) error
	yes := true
	limit := int64(1)
	for want, tc := range map[string]struct {
		reply string
		call  call
	}{
		`GET /api/v1/namespaces/home/pods/web`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "po").Get(t.Context(), "web", nil)
			return err
		}},
		`GET /api/v1/namespaces/shop/pods/web/status?resourceVersion=0`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Namespace("shop").Subresource("status").Get(t.Context(), "web", &metav1.GetOptions{
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
			_, err := resource(t, c, "pods").Subresource("eviction").Create(t.Context(), &unstructured.Object{Object: map[string]any{
				"metadata": map[string]any{"name": "web"}}}, nil)
			return err
		}},
		`PUT /api/v1/namespaces/shop/pods/web application/json {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Update(t.Context(), in("shop", object("Pod", "web")), nil)
			return err
		}},
		`PUT /apis/apps/v1/namespaces/home/deployments/web/scale application/json {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "deploy").Subresource("scale").Update(t.Context(), object("Scale", "web"), nil)
			return err
		}},
		`PATCH /api/v1/namespaces/home/pods/web application/merge-patch+json {"a":null}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Patch(t.Context(), "web", types.MergePatchType, []byte(`{"a":null}`), nil)
			return err
		}},
		`PATCH /api/v1/namespaces/home/pods/web/status?force=true application/json-patch+json []`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Subresource("status").Patch(t.Context(), "web", types.JSONPatchType, []byte(`[]`), &metav1.PatchOptions{Force: &yes})
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
			version := "7"
			foreground := metav1.DeletePropagationForeground
			_, err := resource(t, c, "pods").Delete(t.Context(), "web", &metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{ResourceVersion: &version}, PropagationPolicy: &foreground})
			return err
		}},
		`DELETE /api/v1/namespaces/home/pods`: {listReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").DeleteCollection(t.Context(), nil, nil)
			return err
		}},
		`DELETE /api/v1/namespaces/shop/pods?fieldSelector=status.phase%3DFailed&labelSelector=app%3Dweb&limit=5 application/json {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`: {listReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Namespace("shop").DeleteCollection(t.Context(), &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
				&metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "status.phase=Failed", Limit: 5})
			return err
		}},
		`PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale?dryRun=All application/merge-patch+json {"spec":{"replicas":3}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "deploy").Namespace("shop").Scale(t.Context(), "web", 3, &metav1.PatchOptions{DryRun: []string{"All"}})
			return err
		}},
		`POST /api/v1/namespaces/shop/pods/web/eviction application/json {"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"web"}}`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			return resource(t, c, "pods").Namespace("shop").Evict(t.Context(), "web", nil)
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
			_, err := resource(t, c, "sa").Namespace("shop").CreateToken(t.Context(), "robot", &dynamic.TokenOptions{
				Audiences: []string{"vault", "shop"}, Duration: time.Hour, BoundObject: web})
			return err
		}},
		`GET /apis/apps/v1/namespaces/shop/deployments/a%20b%3Fc`: {podReply, func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "Deployment.v1.apps").Namespace("shop").Get(t.Context(), "a b?c", nil)
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

func TestCreate_KeepsCallersObject(t *testing.T) {
	client, _ := script(t, podReply)
	obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	before := obj.DeepCopy()
	_, err := resource(t, client, "pods").Create(t.Context(), obj, nil)
	require.NoError(t, err)
	assert.Equal(t, before, obj)
}

func TestGet_ResponseNotAnObject(t *testing.T) {
	for _, reply := range []string{``, `<html>`, `[]`, `{}`, podReply + podReply} {
		client, _ := script(t, reply)
		_, err := resource(t, client, "pods").Get(t.Context(), "web", nil)
		require.ErrorContains(t, err, "the response is not a Kubernetes object", reply)
	}
}

func TestResource_StatusOfFailureIsError(t *testing.T) {
	const failure = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Forbidden","code":403,"message":"no"}`
	for name, call := range map[string]func(*dynamic.Resource) error{
		"Get": func(r *dynamic.Resource) error { _, err := r.Get(t.Context(), "web", nil); return err },
		"Create": func(r *dynamic.Resource) error {
			_, err := r.Create(t.Context(), object("Pod", "web"), nil)
			return err
		},
		"Get of a struct": func(r *dynamic.Resource) error {
			_, err := dynamic.As[metav1.PartialObjectMetadata](r).Get(t.Context(), "web", nil)
			return err
		},
		"Get of metadata": func(r *dynamic.Resource) error { _, err := r.Metadata().Get(t.Context(), "web", nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := script(t, failure)
			err := call(resource(t, client, "pods"))
			require.ErrorContains(t, err, "/api/v1/namespaces/home/pods")
			assert.True(t, apierrors.IsForbidden(err), err)
		})
	}
	client, _ := script(t, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`)
	bound, err := resource(t, client, "bindings").Create(t.Context(), &unstructured.Object{Object: map[string]any{}}, nil)
	require.NoError(t, err)
	assert.Equal(t, "Status", bound.GetKind())
}
