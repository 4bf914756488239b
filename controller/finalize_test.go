package controller_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/unstructured"
)

const finalizer = "example.com/disk"

// never is a cleanup that may not be called.
func never(t *testing.T) func(context.Context, *unstructured.Object) error {
	return func(context.Context, *unstructured.Object) error {
		t.Error("cleaned up what lives")
		return nil
	}
}

func patch(t *testing.T, of *dynamic.Resource, name, merge string) *unstructured.Object {
	t.Helper()
	obj, err := of.Patch(t.Context(), name, types.MergePatchType, []byte(merge), nil)
	require.NoError(t, err)
	return obj
}

func get(t *testing.T, of *dynamic.Resource, name string) *unstructured.Object {
	t.Helper()
	obj, err := of.Get(t.Context(), name, nil)
	require.NoError(t, err)
	return obj
}

// deleting deletes an object that has a finalizer, and reads it.
func deleting(t *testing.T, of *dynamic.Resource, name string) *unstructured.Object {
	t.Helper()
	_, err := of.Delete(t.Context(), name, nil)
	require.NoError(t, err)
	return get(t, of, name)
}

func gone(t *testing.T, of *dynamic.Resource, name string) {
	t.Helper()
	_, err := of.Get(t.Context(), name, nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestFinalize_AddsCleansUpAndRemoves(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	of, obj := createConfigMap(t, client, namespace, map[string]any{"name": "web"})

	live, deleted, err := controller.Finalize(t.Context(), of.AllNamespaces(), obj, finalizer, never(t))
	require.NoError(t, err)
	assert.False(t, deleted)
	assert.Equal(t, []string{finalizer}, live.GetFinalizers())
	assert.Empty(t, obj.GetFinalizers(), "the caller's object stays as it is")
	assert.Equal(t, live, get(t, of, "web"))

	again, _, err := controller.Finalize(t.Context(), of, live, finalizer, never(t))
	require.NoError(t, err)
	assert.Same(t, live, again, "nothing is written that is there")

	going := deleting(t, of, "web")
	failure := errors.New("the disk is busy")
	_, deleted, err = controller.Finalize(t.Context(), of, going, finalizer, func(context.Context, *unstructured.Object) error { return failure })
	require.ErrorIs(t, err, failure)
	assert.EqualError(t, err, `clean up configmaps "web": the disk is busy`)
	assert.False(t, deleted)
	assert.Equal(t, []string{finalizer}, get(t, of, "web").GetFinalizers(), "it waits for a cleanup that succeeds")

	cleaned := 0
	_, deleted, err = controller.Finalize(t.Context(), of, going, finalizer, func(_ context.Context, obj *unstructured.Object) error {
		cleaned++
		assert.Equal(t, going, obj)
		return nil
	})
	require.NoError(t, err)
	assert.True(t, deleted)
	assert.Equal(t, 1, cleaned)
	gone(t, of, "web")

	_, deleted, err = controller.Finalize(t.Context(), of, going, finalizer, func(context.Context, *unstructured.Object) error { return nil })
	require.NoError(t, err, "a crash after the removal: the same once more")
	assert.True(t, deleted)
}

func TestFinalize_ClusterScopedObject(t *testing.T) {
	client := controllertest.Connect(t)
	of := controllertest.Resource(t, client, "priorityclasses")
	obj, err := of.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"generateName": "test-"}, "value": int64(1),
	}}, nil)
	require.NoError(t, err)
	_, _, err = controller.Finalize(t.Context(), of, obj, finalizer, never(t))
	require.NoError(t, err)
	going := deleting(t, of, obj.GetName())
	_, deleted, err := controller.Finalize(t.Context(), of, going, finalizer, func(context.Context, *unstructured.Object) error { return nil })
	require.NoError(t, err)
	assert.True(t, deleted)
	gone(t, of, obj.GetName())
}

func TestFinalize_KeepsOtherFinalizers(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	of, obj := createConfigMap(t, client, namespace, map[string]any{"name": "web", "finalizers": []any{"example.com/a", "example.com/b"}})
	obj, _, err := controller.Finalize(t.Context(), of, obj, finalizer, never(t))
	require.NoError(t, err)
	assert.Equal(t, []string{"example.com/a", "example.com/b", finalizer}, obj.GetFinalizers())

	going := deleting(t, of, "web")
	patch(t, of, "web", `{"metadata":{"finalizers":["example.com/b","`+finalizer+`"]}}`) // a is done meanwhile: ours has moved
	_, deleted, err := controller.Finalize(t.Context(), of, going, finalizer, func(context.Context, *unstructured.Object) error { return nil })
	require.NoError(t, err)
	assert.True(t, deleted)
	left := get(t, of, "web")
	assert.Equal(t, []string{"example.com/b"}, left.GetFinalizers())

	_, deleted, err = controller.Finalize(t.Context(), of, left, finalizer, never(t))
	require.NoError(t, err, "it waits for others, and we are done with it")
	assert.True(t, deleted)
	patch(t, of, "web", `{"metadata":{"finalizers":null}}`)
}

func TestFinalize_RemovesByNameNotPosition(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	of, _ := createConfigMap(t, client, namespace, map[string]any{"name": "web", "finalizers": []any{finalizer, "example.com/a"}})
	going := deleting(t, of, "web")
	patch(t, of, "web", `{"metadata":{"finalizers":["example.com/a","`+finalizer+`"]}}`)
	_, deleted, err := controller.Finalize(t.Context(), of, going, finalizer, func(context.Context, *unstructured.Object) error { return nil })
	require.NoError(t, err)
	assert.True(t, deleted)
	assert.Equal(t, []string{"example.com/a"}, get(t, of, "web").GetFinalizers())
	patch(t, of, "web", `{"metadata":{"finalizers":null}}`)
}

func TestFinalize_RereadsStaleObject(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	cleanup := func(cleaned *int) func(context.Context, *unstructured.Object) error {
		return func(context.Context, *unstructured.Object) error { *cleaned++; return nil }
	}
	for name, tc := range map[string]struct {
		meanwhile func(t *testing.T, of *dynamic.Resource)
		deleted   bool
		cleaned   int
		left      []string
	}{
		"another finalizer was added": {func(t *testing.T, of *dynamic.Resource) {
			patch(t, of, "web", `{"metadata":{"finalizers":["example.com/a"]}}`)
		}, false, 0, []string{"example.com/a", finalizer}},
		"the finalizer was added": {func(t *testing.T, of *dynamic.Resource) {
			patch(t, of, "web", `{"metadata":{"finalizers":["`+finalizer+`"]}}`)
		}, false, 0, []string{finalizer}},
		"it was deleted": {func(t *testing.T, of *dynamic.Resource) {
			_, err := of.Delete(t.Context(), "web", nil)
			require.NoError(t, err)
		}, true, 0, nil},
		"it is being deleted, with another's finalizer": {func(t *testing.T, of *dynamic.Resource) {
			patch(t, of, "web", `{"metadata":{"finalizers":["example.com/a"]}}`)
			deleting(t, of, "web")
		}, true, 0, []string{"example.com/a"}},
		"it is being deleted, with ours": {func(t *testing.T, of *dynamic.Resource) {
			patch(t, of, "web", `{"metadata":{"finalizers":["`+finalizer+`","example.com/a"]}}`)
			deleting(t, of, "web")
		}, true, 1, []string{"example.com/a"}},
		"it was deleted and made again": {func(t *testing.T, of *dynamic.Resource) {
			_, err := of.Delete(t.Context(), "web", nil)
			require.NoError(t, err)
			createConfigMap(t, client, namespace, map[string]any{"name": "web"})
		}, true, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			of, obj := createConfigMap(t, client, namespace, map[string]any{"name": "web"})
			tc.meanwhile(t, of)
			cleaned := 0
			_, deleted, err := controller.Finalize(t.Context(), of, obj, finalizer, cleanup(&cleaned))
			require.NoError(t, err)
			assert.Equal(t, tc.deleted, deleted)
			assert.Equal(t, tc.cleaned, cleaned)
			if left, err := of.Get(t.Context(), "web", nil); err == nil {
				assert.Equal(t, tc.left, left.GetFinalizers())
				patch(t, of, "web", `{"metadata":{"finalizers":null}}`)
				if left.GetDeletionTimestamp() == nil {
					_, err := of.Delete(t.Context(), "web", nil)
					require.NoError(t, err)
				}
			} else {
				assert.Nil(t, tc.left)
				assert.True(t, apierrors.IsNotFound(err))
			}
		})
	}
}

func TestFinalize_ReturnsServerError(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	of, obj := createConfigMap(t, client, namespace, map[string]any{"name": "web"})
	_, _, err := controller.Finalize(t.Context(), of, obj, "no name/ for a finalizer", never(t))
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, `add finalizer no name/ for a finalizer to configmaps "web": `)
}

// TestFinalize_UnservedPathIsNoDeletion responds with 404 to the path of an object that is there.
func TestFinalize_UnservedPathIsNoDeletion(t *testing.T) {
	client, server := controllertest.New(t)
	handle := controllertest.Leases(t, client)
	for name, methods := range map[string]string{"to the patch": "PATCH", "to the read": "GET"} {
		t.Run(name, func(t *testing.T) {
			server.Override = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(methods, r.Method) {
					scripted.NotServed(w, nil)
				} else {
					scripted.Status(http.StatusUnprocessableEntity, "Invalid")(w, nil) // obj is out of date: it is read
				}
				return true
			}
			lease := controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "op", "u")
			_, deleted, err := controller.Finalize(t.Context(), handle, lease, finalizer, never(t))
			assert.True(t, apierrors.IsNotFound(err), "%v", err)
			assert.False(t, deleted)
			lease.SetFinalizers([]string{finalizer})
			lease.SetDeletionTimestamp(new(metav1.Now()))
			_, deleted, err = controller.Finalize(t.Context(), handle, lease, finalizer, func(context.Context, *unstructured.Object) error { return nil })
			assert.True(t, apierrors.IsNotFound(err), "%v", err)
			assert.False(t, deleted)
		})
	}
}

func TestFinalize_UnservedVersionIsNoDeletion(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	group := namespace + ".example.com"
	file := strings.Replace(definition("widgets", group), "  versions:\n", `  versions:
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, 1)
	_, err := controller.RegisterCRDs(t.Context(), client, []byte(file), nil)
	require.NoError(t, err)
	controllertest.DeleteAfter(t, controllertest.Resource(t, client, "crd"), "widgets."+group)
	old := controllertest.Resource(t, client, "widgets.v1beta1."+group).Namespace(namespace)
	now := controllertest.Resource(t, client, "widgets.v1."+group).Namespace(namespace)
	obj := createWidget(t, now, "web")
	_, err = controller.RegisterCRDs(t.Context(), client, []byte(strings.Replace(file, "served: true", "served: false", 1)), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := old.Get(t.Context(), "web", nil); return apierrors.IsNotFound(err) }, controllertest.Timeout, controllertest.Timeout/600)
	_, deleted, err := controller.Finalize(t.Context(), old, obj, finalizer, never(t))
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.False(t, deleted)
	get(t, now, "web")
}

func TestFinalize_NeedsUID(t *testing.T) {
	client := controllertest.Connect(t)
	obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	_, _, err := controller.Finalize(t.Context(), controllertest.Resource(t, client, "configmaps"), obj, finalizer, never(t))
	wrong := `finalize configmaps "web": the object's uid (set by the server) and the finalizer's name are required`
	assert.EqualError(t, err, wrong)
	obj.SetUID("u1")
	_, _, err = controller.Finalize(t.Context(), controllertest.Resource(t, client, "configmaps"), obj, "", never(t))
	assert.EqualError(t, err, wrong)
}

func TestFinalize_NeedsUIDAndFinalizer(t *testing.T) {
	client, server := controllertest.New(t)
	handle := controllertest.Leases(t, client)
	for name, tc := range map[string]struct{ uid, finalizer string }{
		"no uid":       {"", finalizer},
		"no finalizer": {"u", ""},
		"neither":      {"", ""},
	} {
		obj := controllertest.Named("coordination.k8s.io/v1", "Lease", "shop", "op", tc.uid)
		live, deleted, err := controller.Finalize(t.Context(), handle, obj, tc.finalizer, never(t))
		assert.EqualError(t, err, `finalize leases.coordination.k8s.io "op": the object's uid (set by the server) and the finalizer's name are required`, name)
		assert.Nil(t, live, name)
		assert.False(t, deleted, name)
	}
	assert.Empty(t, server.Requests(), "nothing is sent")
}
