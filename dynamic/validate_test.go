package dynamic_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
)

func TestInvalidRequestError_InvalidCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		call func(*testing.T, *dynamic.Client) error
		want string
	}{
		"an empty name":          {get("pods", ""), `get pods: the name is empty`},
		"a name with a slash":    {get("pods", "a/b"), `get pods "a/b": the name may not contain '/'`},
		"a name of dots":         {get("pods", ".."), `may not be '..'`},
		"a percent-encoded name": {get("pods", "%2e%2e"), `may not contain '%'`},
		"a control character":    {get("pods", "a\nb"), `contains a control character`},
		"an unserved verb":       {get("bindings", "x"), `get bindings "x": the server does not support the verb (it has: create)`},
		"an unserved verb of nodes": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").Delete(t.Context(), "n", nil)
			return err
		}, "(it has: get, list, create)"},
		"an unserved verb of a resource": {func(t *testing.T, c *dynamic.Client) error {
			resource := &discovery.Resource{
				GVR: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Verbs: []string{"get"}, Subresources: []discovery.Subresource{{Name: "status"}},
			}
			_, err := c.ForAPIResource(resource).Delete(t.Context(), "n", nil)
			return err
		}, "(it has: get)"},
		"a namespace on a cluster-scoped kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").Namespace("shop").Get(t.Context(), "n", nil)
			return err
		}, `Node is cluster-scoped (remove Namespace("shop"))`},
		"a namespaced object of a cluster-scoped kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").Create(t.Context(), in("shop", object("Node", "n")), nil)
			return err
		}, `the object has the namespace "shop" (remove it)`},
		"an empty namespace": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").Namespace("").List(t.Context(), nil))
		}, `the namespace "" is empty (choose one with Namespace, or AllNamespaces`},
		"a namespace with slashes": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Namespace("../../nodes").ListPage(t.Context(), nil)
			return err
		}, `the namespace "../../nodes" may not contain '/'`},
		"get in all namespaces": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").AllNamespaces().Get(t.Context(), "web", nil)
			return err
		}, "one object needs a namespace (choose it with Namespace)"},
		"create without a namespace": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").AllNamespaces().Create(t.Context(), object("Pod", "web"), nil)
			return err
		}, "choose one with Namespace"},
		"a namespace mismatch": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Namespace("shop").Update(t.Context(), in("home", object("Pod", "web")), nil)
			return err
		}, `namespace mismatch: object has "home", handle has "shop"`},
		"an object of another kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Create(t.Context(), object("Deployment", "web"), nil)
			return err
		}, "the object is a apps/v1, Kind=Deployment, not a /v1, Kind=Pod"},
		"a scale of the resource's kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "deploy").Subresource("scale").Update(t.Context(), object("Deployment", "web"), nil)
			return err
		}, `update deployments.apps/scale "web": the object is a apps/v1, Kind=Deployment, but this subresource takes a autoscaling/v1, Kind=Scale`},
		"an eviction of kind Pod": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Subresource("eviction").Create(t.Context(), object("Pod", "web"), nil)
			return err
		}, "but this subresource takes a policy/v1, Kind=Eviction"},
		"an applied status of another kind": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Subresource("status").Apply(t.Context(), object("Scale", "web"), &metav1.ApplyOptions{FieldManager: "me"})
			return err
		}, "but this subresource takes a /v1, Kind=Pod"},
		"an eviction in another namespace": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Namespace("shop").Subresource("eviction").Create(t.Context(), in("home", object("Eviction", "web")), nil)
			return err
		}, `namespace mismatch: object has "home", handle has "shop"`},
		"an eviction without a name": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Subresource("eviction").Create(t.Context(), object("Eviction", ""), nil)
			return err
		}, "the name is empty"},
		"scale without the subresource": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Scale(t.Context(), "web", 1, nil)
			return err
		}, `patch pods/scale "web": the server serves no such subresource (there are: status, eviction)`},
		"evict without the subresource": {func(t *testing.T, c *dynamic.Client) error {
			return resource(t, c, "deploy").Evict(t.Context(), "web", nil)
		}, `create deployments.apps/eviction "web": the server serves no such subresource (there are: scale)`},
		"evict in all namespaces": {func(t *testing.T, c *dynamic.Client) error {
			return resource(t, c, "pods").AllNamespaces().Evict(t.Context(), "web", nil)
		}, "one object needs a namespace"},
		"a token without the subresource": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").CreateToken(t.Context(), "n1", nil)
			return err
		}, `create nodes/token "n1": the server serves no such subresource (there are: none)`},
		"a nil object": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Create(t.Context(), nil, nil)
			return err
		}, "the object is nil"},
		"an object without a name": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Update(t.Context(), object("Pod", ""), nil)
			return err
		}, "the name is empty"},
		"an unknown subresource": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Subresource("scale").Get(t.Context(), "web", nil)
			return err
		}, `get pods/scale "web": the server serves no such subresource (there are: status, eviction)`},
		"a subresource of a resource that has none": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "nodes").Subresource("status").Get(t.Context(), "n", nil)
			return err
		}, "(there are: none)"},
		"an unserved verb of a subresource": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Subresource("status").Delete(t.Context(), "web", nil)
			return err
		}, "(it has: get, patch, update)"},
		"a collection of subresources": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").Subresource("status").Watch(t.Context(), nil))
		}, "remove Subresource"},
		"list with Watch": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").List(t.Context(), &metav1.ListOptions{Watch: true}))
		}, "call Watch"},
		"deletecollection with Watch": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").DeleteCollection(t.Context(), nil, &metav1.ListOptions{Watch: true})
			return err
		}, "deletecollection pods: ListOptions.Watch is set"},
		"deletecollection in all namespaces": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").AllNamespaces().DeleteCollection(t.Context(), nil, nil)
			return err
		}, "deletecollection pods: the API deletes the collection of one namespace only (call it once for each"},
		"an unserved deletecollection": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "namespaces").DeleteCollection(t.Context(), nil, nil)
			return err
		}, "deletecollection namespaces: the server does not support the verb"},
		"list with an invalid label selector": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").List(t.Context(), &metav1.ListOptions{LabelSelector: "app in web"}))
		}, `list pods: the label selector "app in web" cannot be parsed: unable to parse requirement: found 'web' expected: '('`},
		"a page with an invalid field selector": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").ListPage(t.Context(), &metav1.ListOptions{FieldSelector: "metadata.name"})
			return err
		}, `list pods: the field selector "metadata.name" cannot be parsed: invalid selector: 'metadata.name'; can't understand 'metadata.name'`},
		"watch with an invalid label selector": {func(t *testing.T, c *dynamic.Client) error {
			return drain(resource(t, c, "pods").Watch(t.Context(), &metav1.ListOptions{LabelSelector: "a/b/c=d"}))
		}, `watch pods: the label selector "a/b/c=d" cannot be parsed`},
		"deletecollection with an invalid label selector": {func(t *testing.T, c *dynamic.Client) error {
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
		"apply without a field manager": {func(t *testing.T, c *dynamic.Client) error {
			_, err := resource(t, c, "pods").Apply(t.Context(), object("Pod", "web"), nil)
			return err
		}, "set ApplyOptions.FieldManager"},
		"apply with managedFields": {func(t *testing.T, c *dynamic.Client) error {
			read := object("Pod", "web")
			read.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
			_, err := resource(t, c, "pods").Apply(t.Context(), read, &metav1.ApplyOptions{FieldManager: "me"})
			return err
		}, "no metadata.managedFields"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := script(t, podReply)
			err := tc.call(t, client)
			var invalid *dynamic.InvalidRequestError
			require.ErrorAs(t, err, &invalid)
			require.ErrorContains(t, err, tc.want)
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

func TestInvalidRequestError_Classification(t *testing.T) {
	client, server := script(t, podReply)
	pods := resource(t, client, "pods")
	bindings := resource(t, client, "bindings")
	_, noSub := pods.Subresource("scale").Get(t.Context(), "web", nil)
	noEviction := resource(t, client, "nodes").Evict(t.Context(), "n", nil)
	_, noVerb := bindings.Get(t.Context(), "web", nil)
	_, noVerbOfSub := pods.Subresource("status").Create(t.Context(), object("Pod", "web"), nil)
	noWatch := drain(bindings.Watch(t.Context(), nil))
	_, noName := pods.Get(t.Context(), "", nil)
	noSelector := drain(pods.List(t.Context(), &metav1.ListOptions{LabelSelector: "a in b"}))
	_, noObject := pods.Update(t.Context(), nil, nil)
	for _, c := range []struct {
		name              string
		err               error
		notFound, notVerb bool
	}{
		{"an unserved subresource", noSub, true, false},
		{"an unserved eviction", noEviction, true, false},
		{"an unserved verb", noVerb, false, true},
		{"an unserved verb of a subresource", noVerbOfSub, false, true},
		{"an unserved watch", noWatch, false, true},
		{"an empty name", noName, false, false},
		{"a selector", noSelector, false, false},
		{"a nil object", noObject, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var invalid *dynamic.InvalidRequestError
			require.ErrorAs(t, c.err, &invalid)
			assert.Equal(t, c.notFound, apierrors.IsNotFound(c.err))
			assert.Equal(t, c.notFound, retry.IsPathNotFound(c.err))
			assert.False(t, retry.IsObjectNotFound(c.err), "it is no response about an object")
			assert.Equal(t, c.notVerb, apierrors.IsMethodNotSupported(c.err))
			assert.True(t, retry.IsTerminal(c.err))
			assert.False(t, retry.IsDenied(c.err))
			var status *apierrors.StatusError
			assert.NotErrorAs(t, c.err, &status, "no server has responded")
			assert.ErrorContains(t, c.err, invalid.Unwrap().Error())
		})
	}
	assert.Empty(t, server.seen())
	assert.EqualError(t, (&dynamic.InvalidRequestError{Verb: "get", Resource: "pods", Reason: "no"}), "get pods: no")
	assert.NoError(t, (&dynamic.InvalidRequestError{}).Unwrap())
	var invalid *dynamic.InvalidRequestError
	require.ErrorAs(t, noSelector, &invalid)
	assert.EqualError(t, invalid.Unwrap(), "unable to parse requirement: found 'b' expected: '('")
}
