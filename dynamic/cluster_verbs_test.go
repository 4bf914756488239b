package dynamic_test

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// field returns a string field, which must exist.
func field(t *testing.T, obj *unstructured.Object, path ...string) string {
	t.Helper()
	value, found, err := unstructured.Get[string](obj, path...)
	require.NoError(t, err)
	require.True(t, found, "%v is missing", path)
	return value
}

// TestResource_AllVerbs covers a built-in and a custom kind.
func TestResource_AllVerbs(t *testing.T) {
	client, namespace := newNamespace(t)
	for name, tc := range map[string]struct {
		of   *dynamic.Resource
		root string
	}{
		"a built-in kind": {resource(t, client, "cm").Namespace(namespace), "data"},
		"a custom kind":   {sharedWidgets(t, client, namespace), "spec"},
	} {
		t.Run(name, func(t *testing.T) { live(t, tc.of, tc.root) })
	}
}

func live(t *testing.T, of *dynamic.Resource, root string) {
	ctx := t.Context()
	created, err := of.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "one"}, root: map[string]any{"a": "1"},
	}}, nil)
	require.NoError(t, err)
	assert.Equal(t, of.APIResource().GVK, created.GroupVersionKind())
	assert.NotEmpty(t, created.GetUID())

	_, err = of.Create(ctx, created, nil)
	require.Error(t, err, "an object to create has no resourceVersion")
	_, err = of.Create(ctx, &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "one"}}}, nil)
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)

	read, err := of.Get(ctx, "one", nil)
	require.NoError(t, err)
	assert.Equal(t, created, read)
	_, err = of.Get(ctx, "two", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	stale := read.DeepCopy()
	read.Object[root] = map[string]any{"a": "2"}
	updated, err := of.Update(ctx, read, nil)
	require.NoError(t, err)
	assert.Equal(t, "2", field(t, updated, root, "a"))
	_, err = of.Update(ctx, stale, nil)
	require.True(t, apierrors.IsConflict(err), "%v", err)

	patch(t, of, root)
	apply(t, of, root)

	page, err := of.ListPage(ctx, nil)
	require.NoError(t, err)
	assert.Contains(t, namesOf(page.Items), "one")
	for _, item := range page.Items {
		assert.Equal(t, of.APIResource().GVK, item.GroupVersionKind(), "items of a list have their kind")
	}

	gone, err := of.Delete(ctx, "one", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(types.UID("another"))}})
	require.True(t, apierrors.IsConflict(err), "%v: %v", gone, err)
	gone, err = of.Delete(ctx, "one", nil)
	require.NoError(t, err)
	require.NotNil(t, gone.Status)
	assert.Equal(t, metav1.StatusSuccess, gone.Status.Status)
	_, err = of.Get(ctx, "one", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func patch(t *testing.T, of *dynamic.Resource, root string) {
	patched, err := of.Patch(t.Context(), "one", types.JSONPatchType, []byte(`[{"op":"add","path":"/`+root+`/b","value":"3"}]`), nil)
	require.NoError(t, err)
	assert.Equal(t, "3", field(t, patched, root, "b"))

	patched, err = of.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"`+root+`":{"b":null,"c":"4"}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "2", "c": "4"}, patched.Object[root])

	patched, err = of.Patch(t.Context(), "one", types.StrategicMergePatchType, []byte(`{"`+root+`":{"c":"5"}}`), nil)
	if of.APIResource().GVR.Group != "" {
		require.True(t, apierrors.IsUnsupportedMediaType(err), "custom kinds have no strategic patch: %v", err)
		return
	}
	require.NoError(t, err)
	assert.Equal(t, "5", field(t, patched, root, "c"))
}

func apply(t *testing.T, of *dynamic.Resource, root string) {
	wanted := func(value string) *unstructured.Object {
		return &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": "one"}, root: map[string]any{"d": value},
		}}
	}
	applied, err := of.Apply(t.Context(), wanted("6"), &metav1.ApplyOptions{FieldManager: "first"})
	require.NoError(t, err)
	assert.Equal(t, "6", field(t, applied, root, "d"))
	assert.Equal(t, "2", field(t, applied, root, "a"), "what nobody applied stays")

	_, err = of.Apply(t.Context(), wanted("7"), &metav1.ApplyOptions{FieldManager: "second"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "first")
	applied, err = of.Apply(t.Context(), wanted("7"), &metav1.ApplyOptions{FieldManager: "second", Force: true})
	require.NoError(t, err)
	assert.Equal(t, "7", field(t, applied, root, "d"))
}

func TestApply_CreatesMissingObject(t *testing.T) {
	client, namespace := newNamespace(t)
	applied, err := resource(t, client, "cm").Namespace(namespace).Apply(t.Context(), configMap("new", map[string]any{"a": "1"}),
		&metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
	assert.Equal(t, namespace, applied.GetNamespace())
}

func TestCreate_DryRun(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	_, err := configMaps.Create(t.Context(), configMap("dry", nil), &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	_, err = configMaps.Get(t.Context(), "dry", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestDelete_ObjectWithFinalizer(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	kept := configMap("kept", nil)
	kept.SetFinalizers([]string{"example.com/keep"})
	_, err := configMaps.Create(t.Context(), kept, nil)
	require.NoError(t, err)
	gone, err := configMaps.Delete(t.Context(), "kept", nil)
	require.NoError(t, err)
	require.NotNil(t, gone.Object)
	assert.NotNil(t, gone.Object.GetDeletionTimestamp())
	_, err = configMaps.Patch(t.Context(), "kept", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
	require.NoError(t, err)
	_, err = configMaps.Get(t.Context(), "kept", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestResource_StatusErrors(t *testing.T) {
	client, namespace := newNamespace(t)
	broken := deployment("broken")
	unset := broken.Object["spec"].(map[string]any)
	delete(unset, "selector")
	_, err := resource(t, client, "deploy").Namespace(namespace).Create(t.Context(), broken, nil)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "spec.selector")
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	assert.NotEmpty(t, status.ErrStatus.Details.Causes)
}

func TestResource_LimitedUser(t *testing.T) {
	newNamespace(t)
	client := connect(t, "limited")
	_, err := resource(t, client, "configmaps").ListPage(t.Context(), nil)
	require.NoError(t, err)
	_, err = resource(t, client, "secrets").ListPage(t.Context(), nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `User "limited" cannot list resource "secrets"`)
	require.True(t, apierrors.IsForbidden(drain(resource(t, client, "secrets").Watch(t.Context(), nil))))
}

const manifest = `# a page and who serves it
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data:
  index.html: |
    <h1>
    yes
  on: "off"
  number: "0x10"
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: &labels {app: web}}
  template:
    metadata: {labels: *labels}
    spec:
      containers:
      - {name: app, image: "web:1"}
`

// rollout is a Deployment with the few fields that a program sets.
type rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Replicas int32                `json:"replicas"`
		Selector metav1.LabelSelector `json:"selector"`
		Strategy struct {
			RollingUpdate struct {
				MaxSurge intstr.IntOrString `json:"maxSurge"`
			} `json:"rollingUpdate"`
		} `json:"strategy"`
	} `json:"spec"`
}

func TestManifest_RoundTripEqualsKubectl(t *testing.T) {
	client, namespace := newNamespace(t)
	objects := unstructured.NewYAMLDecoder(strings.NewReader(manifest))
	for {
		obj, err := objects.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if obj.GetKind() == "Deployment" {
			containers := []string{"spec", "template", "spec", "containers"}
			require.NoError(t, unstructured.Set(obj, "web:2", append(containers, "[name=app]", "image")...))
			require.NoError(t, unstructured.Set(obj, "proxy:1", append(containers, "[name=proxy]", "image")...))
			require.NoError(t, unstructured.Set(obj, int32(80), append(containers, "[name=proxy]", "ports", "[containerPort=80,protocol=TCP]", "hostPort")...))
		}
		of, err := client.ForObject(t.Context(), obj)
		require.NoError(t, err)
		created, err := of.Namespace(namespace).Create(t.Context(), obj, nil)
		require.NoError(t, err)

		if created.GetKind() == "Deployment" {
			image, _, err := unstructured.Get[string](created, "spec", "template", "spec", "containers", "[name=proxy]", "image")
			require.NoError(t, err)
			assert.Equal(t, "proxy:1", image)
			r, err := unstructured.As[rollout](created)
			require.NoError(t, err)
			assert.Equal(t, int32(2), r.Spec.Replicas)
			assert.Equal(t, map[string]string{"app": "web"}, r.Spec.Selector.MatchLabels)
			assert.Equal(t, intstr.FromString("25%"), r.Spec.Strategy.RollingUpdate.MaxSurge)
			assert.False(t, r.CreationTimestamp.IsZero())
		}
		if created.GetKind() == "ConfigMap" { // which nobody changes meanwhile
			output, err := exec.CommandContext(t.Context(), cluster.Kubectl(t), "--kubeconfig", cluster.Kubeconfig(t), "get", created.GetKind(), created.GetName(), "-n", namespace, "-o", "yaml").Output()
			require.NoError(t, err)
			_, err = unstructured.Delete(created, "metadata", "managedFields") // which kubectl does not show
			require.NoError(t, err)
			text, err := unstructured.EncodeYAML(created)
			require.NoError(t, err)
			assert.Equal(t, string(output), string(text))
		}
	}
}
