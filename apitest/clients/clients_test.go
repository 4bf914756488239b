package clients_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clienttesting "k8s.io/client-go/testing"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clients"
	"github.com/anykind/anykind/unstructured"
)

func settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", ResourceVersion: "7"}, Data: map[string]string{"color": "red"},
	}
}

var configMapsGVR = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func TestNew_ClientsOfOneServer(t *testing.T) {
	t.Parallel()
	c := clients.New(t, nil, &corev1.ConfigMapList{Items: []corev1.ConfigMap{*settings()}})
	typed, err := c.Kubernetes.CoreV1().ConfigMaps("shop").Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "red", typed.Data["color"])
	untyped, err := c.Dynamic.Resource(configMapsGVR).Namespace("shop").Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, typed.UID, untyped.GetUID())
	partial, err := c.Metadata.Resource(configMapsGVR).Namespace("shop").Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, typed.UID, partial.UID)
	var read corev1.ConfigMap
	require.NoError(t, c.Client.Get(t.Context(), crclient.ObjectKey{Namespace: "shop", Name: "settings"}, &read))
	assert.Equal(t, typed.Data, read.Data)
}

func TestNew_InformerFactory(t *testing.T) {
	t.Parallel()
	c := clients.New(t, nil, settings())
	factory := informers.NewSharedInformerFactory(c.Kubernetes, 0)
	lister := factory.Core().V1().ConfigMaps().Lister()
	ctx, cancel := context.WithCancel(t.Context())
	defer factory.Shutdown()
	defer cancel()
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	found, err := lister.ConfigMaps("shop").Get("settings")
	require.NoError(t, err)
	assert.Equal(t, "red", found.Data["color"])
}

func TestNew_CustomResource(t *testing.T) {
	t.Parallel()
	definition := &unstructured.Object{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}
	widget := &unstructuredv1.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "shop", "name": "one"},
	}}
	c := clients.New(t, &clients.Options{Server: apitest.Options{Objects: []*unstructured.Object{definition}}}, widget)
	require.NoError(t, c.Client.Get(t.Context(), crclient.ObjectKeyFromObject(widget), widget.DeepCopy()))
	_, err := c.Dynamic.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("shop").
		Patch(t.Context(), "one", types.MergePatchType, []byte(`{"spec":{"size":1}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	patch := c.Actions()[1].(clienttesting.PatchAction)
	assert.JSONEq(t, `{"spec":{"size":1}}`, string(patch.GetPatch()))
}

func TestNew_ObjectBeingDeleted(t *testing.T) {
	t.Parallel()
	obj := settings()
	obj.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	obj.Finalizers = []string{"example.com/keep"}
	c := clients.New(t, nil, obj)
	assert.Empty(t, c.Actions())
	found, err := c.Kubernetes.CoreV1().ConfigMaps("shop").Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotNil(t, found.DeletionTimestamp)
}

func TestNew_StoredObjects(t *testing.T) {
	t.Parallel()
	obj := settings()
	obj.UID = "a-uid"
	obj.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	incomplete := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	c := clients.New(t, &clients.Options{Stored: true}, obj, incomplete)
	found, err := c.Kubernetes.CoreV1().ConfigMaps("shop").Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, obj.UID, found.UID)
	assert.NotNil(t, found.DeletionTimestamp)
	pod, err := c.Kubernetes.CoreV1().Pods("shop").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, corev1.PodRunning, pod.Status.Phase)
}

// failingTest records Fatalf.
type failingTest struct {
	testing.TB
	message string
}

func (f *failingTest) Helper() {}

func (f *failingTest) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	panic(f)
}

func TestNew_InvalidObjects(t *testing.T) {
	t.Parallel()
	deleted := settings()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for name, tc := range map[string]struct {
		opts *clients.Options
		obj  runtime.Object
		want string
	}{
		"without a finalizer": {nil, deleted, "no finalizer"},
		"unknown type":        {&clients.Options{Scheme: runtime.NewScheme()}, settings(), "Options.Scheme"},
		"invalid":             {nil, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "A B"}}, "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing := &failingTest{TB: t}
			assert.Panics(t, func() { clients.New(failing, tc.opts, tc.obj) })
			assert.Contains(t, failing.message, tc.want)
		})
	}
}

func TestClients_Actions(t *testing.T) {
	t.Parallel()
	c := clients.New(t, nil, settings())
	resource := c.Kubernetes.CoreV1().ConfigMaps("shop")
	obj := settings()
	obj.Name = "more"
	obj.ResourceVersion = ""
	created, err := resource.Create(t.Context(), obj, metav1.CreateOptions{FieldManager: "test"})
	require.NoError(t, err)
	created.Data["color"] = "blue"
	_, err = resource.Update(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = resource.List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	require.NoError(t, err)
	_, err = resource.Get(t.Context(), "absent", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	uid := created.UID
	require.NoError(t, resource.Delete(t.Context(), "more", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
	require.NoError(t, resource.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=web"}))

	actions := c.Actions()
	var verbs []string
	for _, action := range actions {
		verbs = append(verbs, action.GetVerb())
		assert.True(t, action.Matches(action.GetVerb(), "configmaps"))
		assert.Equal(t, "shop", action.GetNamespace())
	}
	require.Equal(t, []string{"create", "update", "list", "get", "delete", "delete-collection"}, verbs)
	create := actions[0].(clienttesting.CreateActionImpl)
	assert.Equal(t, "red", create.GetObject().(*corev1.ConfigMap).Data["color"])
	assert.Equal(t, "test", create.GetCreateOptions().FieldManager)
	assert.Equal(t, "blue", actions[1].(clienttesting.UpdateAction).GetObject().(*corev1.ConfigMap).Data["color"])
	list := actions[2].(clienttesting.ListActionImpl)
	assert.Equal(t, "ConfigMap", list.GetKind().Kind)
	assert.Equal(t, "app=web", list.GetListRestrictions().Labels.String())
	assert.Equal(t, "absent", actions[3].(clienttesting.GetAction).GetName())
	assert.Equal(t, uid, *actions[4].(clienttesting.DeleteActionImpl).GetDeleteOptions().Preconditions.UID)
	assert.Equal(t, "app=web", actions[5].(clienttesting.DeleteCollectionAction).GetListRestrictions().Labels.String())
}
