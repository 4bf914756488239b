package controller_test

import (
	"testing"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func named(apiVersion, kind, namespace, name, uid string) *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(types.UID(uid))
	return obj
}

func references(obj *unstructured.Object) any {
	all, _, _ := unstructured.Get[any](obj, "metadata", "ownerReferences")
	return all
}

func TestAnObjectHasOneControllerAndAnyOwners(t *testing.T) {
	web := named("apps/v1", "Deployment", "shop", "web", "1")
	node := named("v1", "Node", "", "n1", "2")
	pod := named("v1", "Pod", "shop", "web-0", "3")
	reference := func(apiVersion, kind, name, uid string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": uid}
	}
	controlling := func(reference map[string]any) map[string]any {
		reference["controller"], reference["blockOwnerDeletion"] = true, true
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
	var owned *controller.OwnedError
	require.ErrorAs(t, err, &owned)
	assert.EqualValues(t, "1", owned.Controller.UID)
	assert.EqualError(t, err, `Pod "web-0" is controlled by Deployment "web": an object has one controller`)
	assert.Equal(t, want, references(pod))

	require.NoError(t, controller.SetControllerReference(named("apps/v2", "Deployment", "shop", "web", "9"), pod))
	assert.Equal(t, []any{want[0], controlling(reference("apps/v2", "Deployment", "web", "9"))}, references(pod), "it was deleted and made again")
}

func TestAnOwnerThatTheGarbageCollectorWouldNotFindIsRefused(t *testing.T) {
	web := named("apps/v1", "Deployment", "shop", "web", "1")
	for want, tc := range map[string]struct{ owner, obj *unstructured.Object }{
		`make Deployment "web" the owner of Pod "p": the owner is in namespace "shop", the object in "bank": owners are in the same namespace or in none`:                         {web, named("v1", "Pod", "bank", "p", "")},
		`make Deployment "web" the owner of Node "n": the owner is in namespace "shop", the object in none: set its namespace; a cluster-scoped object cannot have such an owner`: {web, named("v1", "Node", "", "n", "")},
		`make Deployment "web" the owner of Pod "p": the owner needs apiVersion, kind, name and uid, as the server gives them`:                                                    {named("apps/v1", "Deployment", "shop", "web", ""), named("v1", "Pod", "shop", "p", "")},
	} {
		assert.EqualError(t, controller.SetControllerReference(tc.owner, tc.obj), want)
		assert.EqualError(t, controller.SetOwnerReference(tc.owner, tc.obj), want)
		assert.Nil(t, references(tc.obj))
	}
}

func TestSetOwner_RefusesMetadataOnlyKind(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		owner, obj := named("meta.k8s.io/"+version, "PartialObjectMetadata", "shop", "web", "1"), named("v1", "Pod", "shop", "p", "")
		want := `make PartialObjectMetadata "web" the owner of Pod "p": the kind is that of a metadata-only answer: set the apiVersion and kind of the object itself`
		assert.EqualError(t, controller.SetControllerReference(owner, obj), want)
		assert.EqualError(t, controller.SetOwnerReference(owner, obj), want)
		assert.Nil(t, references(obj))
	}
	obj := named("meta.k8s.io/v1", "PartialObjectMetadata", "shop", "p", "")
	require.NoError(t, controller.SetControllerReference(named("apps/v1", "Deployment", "shop", "web", "1"), obj), "of an owned object only metadata is written")
}
