package inventory_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/relation"
	"github.com/anykind/anykind/unstructured"
)

const graphResources = `
	/v1 pods pod Pod
	/v1 secrets secret Secret
	/v1 services service Service
	/v1 serviceaccounts serviceaccount ServiceAccount
	cluster /v1 nodes node Node
	apps/v1 deployments deployment Deployment
	apps/v1 replicasets replicaset ReplicaSet
	autoscaling/v2 horizontalpodautoscalers horizontalpodautoscaler HorizontalPodAutoscaler
	policy/v1 poddisruptionbudgets poddisruptionbudget PodDisruptionBudget
	cluster rbac.authorization.k8s.io/v1 clusterroles clusterrole ClusterRole
	rbac.authorization.k8s.io/v1 rolebindings rolebinding RoleBinding
	shop.example/v1 carts cart Cart
`

func graph() *scripted.Server {
	server := scripted.New(graphResources)
	owner := func(kind, name, uid string) string {
		return fmt.Sprintf(`"ownerReferences":[{"apiVersion":"apps/v1","kind":%q,"name":%q,"uid":%q}]`, kind, name, uid)
	}
	pod := `,"spec":{"nodeName":"n","serviceAccountName":"robot","volumes":[{"name":"a","secret":{"secretName":"password"}},
		{"name":"b","secret":{"secretName":"missing"}},{"name":"c","emptyDir":{}}],
		"containers":[{"env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"password"}}},{"name":"Y","valueFrom":{"secretKeyRef":{"name":"password"}}}]}]}`
	server.Handle("WATCH /api/v1/pods", stream("v1", "Pod",
		metadata("a/web/p1", `"labels":{"app":"web"}`, owner("ReplicaSet", "web", "r1"))+pod,
		metadata("a/late/p2", `"labels":{"app":"web"}`, owner("ReplicaSet", "web", "replaced")),
		metadata("b/web/p3", `"labels":{"app":"web"}`, owner("Unknown", "x", "x1"))))
	server.Handle("WATCH /api/v1/secrets", stream("v1", "Secret", metadata("a/password/s1"), metadata("b/password/s2")))
	server.Handle("WATCH /api/v1/services", stream("v1", "Service", metadata("a/web/v1")+`,"spec":{"selector":{"app":"web"}}`, metadata("a/none/v2")+`,"spec":{"selector":5}`))
	server.Handle("WATCH /api/v1/serviceaccounts", stream("v1", "ServiceAccount", metadata("a/robot/a1")))
	server.Handle("WATCH /api/v1/nodes", stream("v1", "Node", metadata("/n/n1", `"labels":{"zone":"z"}`, owner("ReplicaSet", "web", "r1"))))
	server.Handle("WATCH /apis/apps/v1/deployments", stream("apps/v1", "Deployment", metadata("a/web/d1")))
	server.Handle("WATCH /apis/apps/v1/replicasets", stream("apps/v1", "ReplicaSet", metadata("a/web/r1", owner("Deployment", "web", "d1"))))
	server.Handle("WATCH /apis/autoscaling/v2/horizontalpodautoscalers", stream("autoscaling/v2", "HorizontalPodAutoscaler",
		metadata("a/web/h1")+`,"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}`))
	server.Handle("WATCH /apis/policy/v1/poddisruptionbudgets", stream("policy/v1", "PodDisruptionBudget",
		metadata("a/web/b1")+`,"spec":{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}`))
	server.Handle("WATCH /apis/rbac.authorization.k8s.io/v1/clusterroles", stream("rbac.authorization.k8s.io/v1", "ClusterRole", metadata("/view/c1")+`,"pods":{"app":"web"}`))
	server.Handle("WATCH /apis/rbac.authorization.k8s.io/v1/rolebindings", stream("rbac.authorization.k8s.io/v1", "RoleBinding",
		metadata("b/view/rb")+`,"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},
			"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"robot"},{"kind":"ServiceAccount","name":"robot","namespace":"a"}]`))
	server.Handle("WATCH /apis/shop.example/v1/carts", stream("shop.example/v1", "Cart", metadata("a/full/f1")+`,"spec":{"payment":"password","zones":{"zone":"z"}}`))
	return server
}

// edgeTexts returns edges in the form RELATION KIND NAMESPACE/NAME, with "missing" for a missing object.
func edgeTexts(edges []inventory.Edge) []string {
	texts := []string{}
	for _, e := range edges {
		text := fmt.Sprintf("%s %s %s/%s", e.Relation, e.Kind, e.Namespace, e.Name)
		if e.Err != nil {
			text += " missing"
		}
		texts = append(texts, text)
	}
	return texts
}

func TestView_Edges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, graph(), nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		cart := schema.GroupKind{Group: "shop.example", Kind: "Cart"}
		relations := append(relation.BuiltIn(),
			relation.Relation{Name: "pays", From: cart, To: schema.GroupKind{Kind: "Secret"}, Field: "spec.payment"},
			relation.Relation{Name: "ships", From: cart, To: schema.GroupKind{Kind: "Node"}, Field: "spec.zones", IsSelector: true},
			relation.Relation{ // nothing is in the namespace of a cluster-scoped object
				Name: "allows", From: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, To: schema.GroupKind{Kind: "Pod"}, Field: "pods", IsSelector: true,
			})
		object := func(uid string) *unstructured.Lazy {
			page, err := c.Query(t.Context(), &inventory.Query{UID: types.UID(uid)})
			require.NoError(t, err)
			require.Len(t, page.Entries, 1, uid)
			return page.Entries[0].Object()
		}
		for uid, want := range map[string][]string{
			"p1": {"owner ReplicaSet.apps a/web", "mounts Secret a/password", "mounts Secret a/missing missing", "refers Secret a/password", "refers ServiceAccount a/robot", "refers Node /n"},
			"p2": {"owner ReplicaSet.apps a/web missing"},
			"p3": {"owner Unknown.apps b/x missing"},
			"n1": {"owner ReplicaSet.apps /web missing"},
			"v1": {"selects Pod a/late", "selects Pod a/web"},
			"v2": {},
			"r1": {"owner Deployment.apps a/web"},
			"b1": {"selects Pod a/late", "selects Pod a/web"},
			"h1": {"scales Deployment.apps a/web"},
			"rb": {"binds ClusterRole.rbac.authorization.k8s.io /view", "binds ServiceAccount a/robot"},
			"f1": {"pays Secret a/password", "ships Node /n"},
			"c1": {},
		} {
			edges, err := c.Edges(t.Context(), object(uid), relations)
			require.NoError(t, err)
			assert.Equal(t, want, edgeTexts(edges), uid)
			for _, e := range edges {
				assert.Equal(t, e.Err != nil, apierrors.IsNotFound(e.Err))
				assert.Equal(t, e.Err == nil, e.Entry.Cache() != nil)
			}
		}
		for uid, want := range map[string][]string{
			"s1": {"mounts Pod a/web", "refers Pod a/web", "pays Cart.shop.example a/full"},
			"s2": {},
			"p2": {"selects Service a/web", "selects PodDisruptionBudget.policy a/web"},
			"n1": {"refers Pod a/web", "ships Cart.shop.example a/full"},
			"d1": {"scales HorizontalPodAutoscaler.autoscaling a/web"},
			"a1": {"refers Pod a/web", "binds RoleBinding.rbac.authorization.k8s.io b/view"},
			"c1": {"binds RoleBinding.rbac.authorization.k8s.io b/view"},
		} {
			edges, err := c.EdgesTo(t.Context(), object(uid), relations)
			require.NoError(t, err)
			assert.Equal(t, want, edgeTexts(edges), uid)
		}
	})
}

func TestView_EdgesPermissions(t *testing.T) {
	const reviews = "POST /apis/authorization.k8s.io/v1/selfsubject"
	const resources = graphResources + `
	cluster authorization.k8s.io/v1 selfsubjectaccessreviews selfsubjectaccessreview SelfSubjectAccessReview - - create
	cluster authorization.k8s.io/v1 selfsubjectrulesreviews selfsubjectrulesreview SelfSubjectRulesReview - - create`
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, graph(), nil)
		require.NoError(t, c.WaitForSync(t.Context()))
		server := scripted.New(resources)
		server.Handle(reviews+"rulesreviews", review(`{"resourceRules":[{"verbs":["list"],"apiGroups":[""],"resources":["pods"]}]}`))
		server.Handle(reviews+"accessreviews", review(`{"allowed":false}`))
		view := c.For(connect(t, server))
		page, err := view.Query(t.Context(), &inventory.Query{UID: "p1"})
		require.NoError(t, err)
		require.Len(t, page.Entries, 1)
		edges, err := view.Edges(t.Context(), page.Entries[0].Object(), relation.BuiltIn())
		require.NoError(t, err)
		require.Len(t, edges, 6)
		for _, e := range edges {
			assert.True(t, apierrors.IsForbidden(e.Err), "%s: no difference between a missing object and an object that the user may not list", e.Name)
			assert.Nil(t, e.Entry.Cache())
		}
		secrets, err := c.Query(t.Context(), &inventory.Query{UID: "s1"})
		require.NoError(t, err)
		edges, err = view.EdgesTo(t.Context(), secrets.Entries[0].Object(), relation.BuiltIn())
		require.NoError(t, err)
		assert.Equal(t, []string{"mounts Pod a/web", "refers Pod a/web"}, edgeTexts(edges))
		pods, err := view.EdgesTo(t.Context(), page.Entries[0].Object(), relation.BuiltIn())
		require.NoError(t, err)
		assert.Empty(t, pods, "the user may not list services")
	})
}
