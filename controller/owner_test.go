package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

func references(obj *unstructured.Object) any {
	all, _, _ := unstructured.Get[any](obj, "metadata", "ownerReferences")
	return all
}

func TestSetControllerReference_OneController(t *testing.T) {
	web := controllertest.Named("apps/v1", "Deployment", "shop", "web", "1")
	node := controllertest.Named("v1", "Node", "", "n1", "2")
	pod := controllertest.Named("v1", "Pod", "shop", "web-0", "3")
	reference := func(apiVersion, kind, name, uid string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": uid}
	}
	controlling := func(reference map[string]any) map[string]any {
		reference["controller"] = true
		reference["blockOwnerDeletion"] = true
		return reference
	}
	require.NoError(t, controller.SetOwnerReference(node, pod))
	require.NoError(t, controller.SetControllerReference(web, pod))
	want := []any{reference("v1", "Node", "n1", "2"), controlling(reference("apps/v1", "Deployment", "web", "1"))}
	assert.Equal(t, want, references(pod))

	require.NoError(t, controller.SetControllerReference(web, pod))
	require.NoError(t, controller.SetOwnerReference(web, pod))
	assert.Equal(t, want, references(pod), "again changes nothing, nor does it cease to be the controller")

	err := controller.SetControllerReference(node, pod)
	var owned *controller.AlreadyOwnedError
	require.ErrorAs(t, err, &owned)
	assert.EqualValues(t, "1", owned.Controller.UID)
	assert.EqualError(t, err, `Pod "web-0" is controlled by Deployment "web" (an object has one controller)`)
	assert.Equal(t, want, references(pod))

	require.NoError(t, controller.SetControllerReference(controllertest.Named("apps/v2", "Deployment", "shop", "web", "9"), pod))
	assert.Equal(t, []any{want[0], controlling(reference("apps/v2", "Deployment", "web", "9"))}, references(pod), "it was deleted and made again")
}

func TestSetControllerReference_RejectsInvalidOwners(t *testing.T) {
	web := controllertest.Named("apps/v1", "Deployment", "shop", "web", "1")
	for want, tc := range map[string]struct{ owner, obj *unstructured.Object }{
		`set owner Deployment "web" of Pod "p": the owner is in namespace "shop", the object in "bank" (owners are in the same namespace or in none)`:                         {web, controllertest.Named("v1", "Pod", "bank", "p", "")},
		`set owner Deployment "web" of Node "n": the owner is in namespace "shop", the object in none (set its namespace; a cluster-scoped object cannot have such an owner)`: {web, controllertest.Named("v1", "Node", "", "n", "")},
		`set owner Deployment "web" of Pod "p": incomplete owner (it needs apiVersion, kind, name and uid, as the server sets them)`:                                          {controllertest.Named("apps/v1", "Deployment", "shop", "web", ""), controllertest.Named("v1", "Pod", "shop", "p", "")},
	} {
		assert.EqualError(t, controller.SetControllerReference(tc.owner, tc.obj), want)
		assert.EqualError(t, controller.SetOwnerReference(tc.owner, tc.obj), want)
		assert.Nil(t, references(tc.obj))
	}
}

func TestSetOwnerReference_RejectsMetadataOnlyKind(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		owner := controllertest.Named("meta.k8s.io/"+version, "PartialObjectMetadata", "shop", "web", "1")
		obj := controllertest.Named("v1", "Pod", "shop", "p", "")
		want := `set owner PartialObjectMetadata "web" of Pod "p": the owner's kind is that of a metadata-only response (set the apiVersion and kind of the object itself)`
		assert.EqualError(t, controller.SetControllerReference(owner, obj), want)
		assert.EqualError(t, controller.SetOwnerReference(owner, obj), want)
		assert.Nil(t, references(obj))
	}
	obj := controllertest.Named("meta.k8s.io/v1", "PartialObjectMetadata", "shop", "p", "")
	require.NoError(t, controller.SetControllerReference(controllertest.Named("apps/v1", "Deployment", "shop", "web", "1"), obj), "of an owned object only metadata is written")
}
