package tree

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func object(kind, name string) *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{"kind": kind}}
	obj.SetName(name)
	return obj
}

func TestWrite(t *testing.T) {
	shared := &Node{Object: object("Pod", "web-1"), Health: readiness.Result{Status: readiness.Failed, Message: "crashes\x1b"}}
	tree := &Tree{Roots: []*Node{{
		Object: object("Deployment", "web"), Health: readiness.Result{Status: readiness.InProgress, Message: "1 of 2"},
		Owned: []*Node{
			{Object: object("ReplicaSet", "web-1"), Health: readiness.Result{Status: readiness.Current, Message: "fine"}, Owned: []*Node{shared}},
			{Object: object("Widget", "w")},
		},
	}}}
	var b strings.Builder
	require.NoError(t, Write(&b, tree, &WriteOptions{Now: time.Now()}))
	assert.Equal(t, strings.TrimPrefix(`
OBJECT               STATUS       AGE         MESSAGE
Deployment/web       InProgress   <unknown>   1 of 2
├─ReplicaSet/web-1   Current      <unknown>
│ └─Pod/web-1        Failed       <unknown>   crashes?
└─Widget/w           -            <unknown>
`, "\n"), b.String())
	b.Reset()
	paint := func(_ readiness.Status, text string) string { return "<" + text + ">" }
	require.NoError(t, Write(&b, tree, &WriteOptions{Now: time.Now(), ShowNamespaces: true, Paint: paint}))
	assert.Contains(t, b.String(), "OBJECT               NAMESPACE   STATUS")
	assert.Contains(t, b.String(), "<Failed>       <unknown>   crashes?")
}

func TestWrite_References(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "s")
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "d", nil)
	config := &Node{Object: object("ConfigMap", "c"), Health: readiness.Result{Status: readiness.Current}}
	gone := &Node{Object: object("Secret", "s")}
	pod := &Node{Object: object("Pod", "web-1"), Health: readiness.Result{Status: readiness.Current}, References: []Reference{
		{Relation: "mounts", Target: config}, {Relation: "refers", Target: config}, {Relation: "mounts", Target: gone, Err: missing, Optional: true},
	}}
	tree := &Tree{Roots: []*Node{{
		Object: object("Deployment", "web"), Health: readiness.Result{Status: readiness.InProgress}, Owned: []*Node{pod}, References: []Reference{
			{Relation: "mounts", Target: config}, {Relation: "refers", Target: gone, Err: missing},
			{Relation: "refers", Target: &Node{Object: object("Secret", "d")}, Err: denied},
			{Relation: "refers", Target: &Node{Object: object("Secret", "e")}, Err: errors.New("broken\x1b")},
		},
	}}}
	var b strings.Builder
	paint := func(status readiness.Status, text string) string {
		if status == readiness.Failed {
			return strings.ToUpper(text)
		}
		return text
	}
	require.NoError(t, Write(&b, tree, &WriteOptions{Paint: paint}))
	assert.Equal(t, strings.TrimPrefix(`
OBJECT                   STATUS       AGE         MESSAGE
Deployment/web           InProgress   <unknown>
├─mounts ConfigMap/c     Current      <unknown>
├─refers Secret/s        NOTFOUND     <unknown>
├─refers Secret/d        -            <unknown>   no permission to get it
├─refers Secret/e        -            <unknown>   broken?
└─Pod/web-1              Current      <unknown>
  ├─refers ConfigMap/c   Current      <unknown>
  └─mounts Secret/s      NotFound     <unknown>   optional
`, "\n"), b.String())
	config.Object.SetNamespace("a")
	b.Reset()
	require.NoError(t, Write(&b, tree, nil))
	assert.Contains(t, b.String(), "├─mounts ConfigMap/c     a           Current", "a namespace that differs from the owner's")
}

// kinds returns a tree as kinds and statuses.
func kinds(nodes []*Node) string {
	var all []string
	for _, n := range nodes {
		text := n.Object.GetKind() + "=" + string(n.Health.Status)
		if len(n.Owned) > 0 {
			text += "(" + kinds(n.Owned) + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// only yields an object as the subject.
func only(in *dynamic.Resource, obj *unstructured.Object) iter.Seq2[*resource.Info, error] {
	return func(yield func(*resource.Info, error) bool) { yield(&resource.Info{Resource: in, Object: obj}, nil) }
}

func TestFind_Deployment(t *testing.T) {
	cluster.NeedComponents(t, cluster.Nodes, cluster.ControllerManager, cluster.Scheduler)
	c := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	deployments := client.Resource(t, c, "deployments").Namespace(namespace)
	labels := map[string]any{"app": "web"}
	_, err := deployments.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"replicas": int64(7), "selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}},
		}},
	}}, nil)
	require.NoError(t, err)
	web, err := deployments.Wait(ctx, "web", dynamic.Ready())
	require.NoError(t, err)

	tree, err := Find(ctx, c, only(deployments, web), nil)
	require.NoError(t, err)
	assert.Empty(t, tree.Unread)
	pods := strings.TrimSpace(strings.Repeat("Pod=Current ", 7))
	assert.Equal(t, "Deployment=Current(ReplicaSet=Current("+pods+"))", kinds(tree.Roots))

	// The owners of a single pod without their further objects, and a config map with a cluster-scoped owner.
	handle := client.Resource(t, c, "pods").Namespace(namespace)
	page, err := handle.ListPage(ctx, nil)
	require.NoError(t, err)
	tree, err = Find(ctx, c, only(handle, page.Items[0]), nil)
	require.NoError(t, err)
	assert.Equal(t, "Deployment=Current(ReplicaSet=Current(Pod=Current))", kinds(tree.Roots))
	assert.True(t, tree.Roots[0].Owned[0].Owned[0].IsSubject)

	home, err := client.Resource(t, c, "namespaces").Get(ctx, namespace, nil)
	require.NoError(t, err)
	owned := object("ConfigMap", "owned")
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: namespace, UID: home.GetUID()}})
	owned.SetAPIVersion("v1")
	configMaps := client.Resource(t, c, "configmaps").Namespace(namespace)
	created, err := configMaps.Create(ctx, owned, nil)
	require.NoError(t, err)
	tree, err = Find(ctx, c, only(configMaps, created), nil)
	require.NoError(t, err)
	assert.Equal(t, "Namespace=Current(ConfigMap=Current)", kinds(tree.Roots))
}
