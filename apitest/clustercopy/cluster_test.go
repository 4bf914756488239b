package clustercopy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

// manifest has a definition with two versions, the second of which is stored, and objects of many kinds.
const manifest = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - &version
    name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 3}
              color: {type: string}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - <<: *version
    name: v1
    storage: false
---
apiVersion: shop.example.com/v1
kind: Widget
metadata: {name: red, namespace: shop, labels: {team: a}}
spec: {color: red}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop, labels: {team: a}}
data: {color: red}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: shop}
stringData: {password: swordfish}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web:1, ports: [{containerPort: 80}]}]
---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {maxReplicas: 5, targetCPUUtilizationPercentage: 70, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup, namespace: shop}
spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: backup, image: backup:1}]}}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: pods, namespace: shop}
spec: {hard: {pods: "10"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: shop}
value: 100
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: shop}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [shop.none], apiVersions: [v1], operations: [CREATE], resources: [nothing]}]}
  validations: [{expression: "true"}]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: leader, namespace: shop}
spec: {holderIdentity: one}
`

// populate creates the objects of manifest on the sandbox, with several managers, an owner, and an object in deletion.
func populate(t *testing.T, c *dynamic.Client) {
	t.Helper()
	ctx := t.Context()
	for obj, err := range c.ForObjects(ctx, unstructured.NewYAMLDecoder(strings.NewReader(manifest)).All()) {
		require.NoError(t, err)
		_, err = obj.Resource.Apply(ctx, obj.Object, &metav1.ApplyOptions{FieldManager: "deployer", Force: true})
		require.NoError(t, err, obj.Object.GetName())
	}
	maps := client.Resource(t, c, "configmaps").Namespace("shop")
	settings, err := maps.Get(ctx, "settings", nil)
	require.NoError(t, err)
	owned := object("v1", "ConfigMap", "owned")
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "settings", UID: settings.GetUID()}})
	_, err = maps.Apply(ctx, owned, &metav1.ApplyOptions{FieldManager: "other", Force: true})
	require.NoError(t, err)
	leaving := object("v1", "ConfigMap", "leaving")
	leaving.SetFinalizers([]string{"shop.example.com/wait"})
	_, err = maps.Apply(ctx, leaving, &metav1.ApplyOptions{FieldManager: "other", Force: true})
	require.NoError(t, err)
	_, err = maps.Delete(ctx, "leaving", nil)
	require.NoError(t, err)
	widgets := client.Resource(t, c, "widgets").Namespace("shop")
	red, err := widgets.Get(ctx, "red", nil)
	require.NoError(t, err)
	require.NoError(t, unstructured.Set(red, "ready", "status", "phase"))
	_, err = widgets.Subresource("status").Update(ctx, red, nil)
	require.NoError(t, err)
	definitions := client.Resource(t, c, "customresourcedefinitions")
	_, err = definitions.Patch(ctx, "widgets.shop.example.com", "application/json-patch+json",
		[]byte(`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`), nil)
	require.NoError(t, err)
}

func object(apiVersion, kind, name string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
}

// sandbox returns a client of the sandbox with the objects of manifest.
func sandbox(t *testing.T) *dynamic.Client {
	t.Helper()
	c := client.Connect(t, "admin")
	t.Cleanup(func() { remove(t, c) })
	populate(t, c)
	return c
}

// remove removes the objects that a following test would find.
func remove(t *testing.T, c *dynamic.Client) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	maps := client.Resource(t, c, "configmaps").Namespace("shop")
	_, err := maps.Patch(ctx, "leaving", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), nil)
	require.NoError(t, err)
	definitions := client.Resource(t, c, "customresourcedefinitions")
	_, err = definitions.Delete(ctx, "widgets.shop.example.com", nil)
	require.NoError(t, err)
	_, err = definitions.Named("widgets.shop.example.com").Wait(ctx, "widgets.shop.example.com", dynamic.Deleted())
	require.NoError(t, err)
}

// lists returns all objects of each served resource in all versions, as JSON.
func lists(ctx context.Context, t *testing.T, c *dynamic.Client, resourceVersion string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	snapshot, err := c.Discovery().Refresh(ctx)
	require.NoError(t, err)
	for r := range snapshot.Resources() {
		switch r.GVR.GroupResource().String() {
		case "events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses":
			continue
		}
		if r.Supports("list") {
			all[r.GVR.String()] = listJSON(ctx, t, c, r, resourceVersion)
		}
	}
	return all
}

func listJSON(ctx context.Context, t *testing.T, c *dynamic.Client, r *discovery.Resource, resourceVersion string) []string {
	t.Helper()
	opts := &metav1.ListOptions{}
	if resourceVersion != "" {
		opts = &metav1.ListOptions{ResourceVersion: resourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	}
	handle := c.ForAPIResource(r)
	if r.Namespaced {
		handle = handle.AllNamespaces()
	}
	texts := []string{}
	for obj, err := range handle.List(ctx, opts) {
		require.NoError(t, err, r.GVR)
		text, err := json.Marshal(obj.Object)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	return texts
}

func TestFrom_ServedCopyEqualsTheCluster(t *testing.T) {
	ctx := t.Context()
	c := sandbox(t)
	taken, err := clustercopy.From(ctx, c, &clustercopy.Options{SecretData: true})
	require.NoError(t, err)
	assert.Contains(t, taken.Version.GitVersion, "v1.")
	var file bytes.Buffer
	require.NoError(t, taken.Save(&file))
	loaded, err := clustercopy.Load(&file)
	require.NoError(t, err)
	assert.Equal(t, texts(taken), texts(loaded))
	server := apitest.NewServer(t, &apitest.Options{Copy: loaded})
	assert.Empty(t, server.CopyDifferences())

	want := lists(ctx, t, c, taken.ResourceVersion)
	got := lists(ctx, t, server.Client(), "")
	objects := 0
	for name, expected := range want {
		assert.Equal(t, expected, got[name], name)
		objects += len(expected)
		delete(got, name)
	}
	for name, rest := range got {
		assert.Empty(t, rest, name)
	}
	t.Logf("%d objects of %d resources are equal", objects, len(want))
	require.Contains(t, want, schema.GroupVersionResource{Group: "shop.example.com", Version: "v1beta1", Resource: "widgets"}.String())

	t.Run("writes", func(t *testing.T) { checkWrites(t, server, taken.ResourceVersion) })
	t.Run("watches", func(t *testing.T) { checkWatches(t, server, taken.ResourceVersion) })
	t.Run("definition", func(t *testing.T) { checkDefinition(t, server) })
}

// checkWrites writes to a served copy: conflicts name the cluster's managers, revisions continue, owners are found.
func checkWrites(t *testing.T, server *apitest.Server, resourceVersion string) {
	ctx := t.Context()
	maps := client.Resource(t, server.Client(), "configmaps").Namespace("shop")
	settings := object("v1", "ConfigMap", "settings")
	settings.Object["data"] = map[string]any{"color": "blue"}
	_, err := maps.Apply(ctx, settings, &metav1.ApplyOptions{FieldManager: "me"})
	var conflict *dynamic.ApplyConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "deployer", conflict.Conflicts[0].Manager)
	before, err := maps.Get(ctx, "settings", nil)
	require.NoError(t, err)
	after, err := maps.Apply(ctx, settings, &metav1.ApplyOptions{FieldManager: "me", Force: true})
	require.NoError(t, err)
	assert.Equal(t, number(t, resourceVersion)+1, number(t, after.GetResourceVersion()))
	assert.Equal(t, before.GetUID(), after.GetUID())
	owned, err := maps.Get(ctx, "owned", nil)
	require.NoError(t, err)
	assert.Equal(t, before.GetUID(), owned.GetOwnerReferences()[0].UID)
	stale := before.DeepCopy()
	_, err = maps.Update(ctx, stale, nil)
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	_, err = maps.Patch(ctx, "leaving", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), nil)
	require.NoError(t, err)
	_, err = maps.Get(ctx, "leaving", nil)
	assert.True(t, apierrors.IsNotFound(err), "the deletion is completed: %v", err)
}

func number(t *testing.T, resourceVersion string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	require.NoError(t, err)
	return n
}

// checkWatches watches from the copy's revision and from an older one.
func checkWatches(t *testing.T, server *apitest.Server, resourceVersion string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	widgets := client.Resource(t, server.Client(), "widgets").Namespace("shop")
	_, err := widgets.Patch(ctx, "red", "application/merge-patch+json", []byte(`{"spec":{"color":"blue"}}`), nil)
	require.NoError(t, err)
	for event, err := range widgets.Watch(ctx, &metav1.ListOptions{ResourceVersion: resourceVersion}) {
		require.NoError(t, err)
		assert.Equal(t, "red", event.Object.GetName())
		assert.Equal(t, "MODIFIED", string(event.Type))
		break
	}
	old := strconv.FormatInt(number(t, resourceVersion)-1, 10)
	for _, err = range widgets.Watch(ctx, &metav1.ListOptions{ResourceVersion: old}) {
		break
	}
	assert.True(t, apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "%v", err)
	_, err = widgets.ListPage(ctx, &metav1.ListOptions{ResourceVersion: old, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	assert.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

// checkDefinition deletes a copied definition with its objects.
func checkDefinition(t *testing.T, server *apitest.Server) {
	ctx := t.Context()
	_, err := client.Resource(t, server.Client(), "customresourcedefinitions").Delete(ctx, "widgets.shop.example.com", nil)
	require.NoError(t, err)
	_, err = server.Client().Discovery().Refresh(ctx)
	require.NoError(t, err)
	for _, obj := range server.Objects() {
		assert.NotContains(t, obj.GetAPIVersion(), "shop.example.com")
	}
}

// texts returns the objects of a copy and what is known about them.
func texts(c *clustercopy.Copy) (all []string) {
	for _, obj := range c.Objects {
		all = append(all, string(obj.JSON()))
	}
	facts, err := json.Marshal([]any{c.Version, c.TakenAt, c.ResourceVersion, c.Resources, c.Omitted})
	if err != nil {
		panic(err)
	}
	return append(all, string(facts))
}
