package applyset_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

const pruned = `
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE-shared}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: charms.NAMESPACE.example.com}
spec:
  group: NAMESPACE.example.com
  scope: Namespaced
  names: {plural: charms, singular: charm, kind: Charm, listKind: CharmList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: owned}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: theirs}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain, namespace: NAMESPACE-shared}
---
apiVersion: v1
kind: Secret
metadata: {name: plain}
`

// TestSet_PruneKeepsForeignObjects prunes a set with an owned object, objects of others in a Namespace and of a kind, and an object
// that a different set has taken over.
func TestSet_PruneKeepsForeignObjects(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("prune")
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "namespaces"), e.namespace+"-shared")
	_, err := set.Apply(t.Context(), e.objects(t, pruned), nil)
	require.NoError(t, err)

	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	patch := func(name, patch string) {
		t.Helper()
		_, err := configMaps.Patch(t.Context(), name, types.MergePatchType, []byte(patch), nil)
		require.NoError(t, err)
	}
	owner, err := configMaps.Create(t.Context(), e.configMaps(t, "x", "owner")[0].Object, nil)
	require.NoError(t, err)
	patch("owned", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+string(owner.GetUID())+`"}]}}`)
	patch("theirs", `{"metadata":{"labels":{"applyset.kubernetes.io/part-of":"different"}}}`)
	_, err = configMaps.Namespace(e.namespace+"-shared").Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "foreign"},
	}}, nil)
	require.NoError(t, err)
	charms, err := e.WaitForResources(t.Context(), "charms."+e.namespace+".example.com")
	require.NoError(t, err)
	_, err = charms[0].Namespace(e.namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "foreign"},
	}}, nil)
	require.NoError(t, err)

	want := []string{
		"kept ConfigMap owned", "kept Namespace " + e.namespace + "-shared", "kept CustomResourceDefinition charms." + e.namespace + ".example.com",
		"pruned ConfigMap plain", "pruned Secret plain",
	}
	e.requests.reset()
	events, err := set.Apply(t.Context(), nil, &applyset.ApplyOptions{DryRun: true})
	require.NoError(t, err)
	assert.ElementsMatch(t, want, outcomes(events))
	for _, request := range writes(e.requests.reset()) {
		assert.Contains(t, request, "DELETE", "dry runs of deletions")
	}
	reasons := map[string]string{}
	for _, event := range events {
		reasons[event.Object.Name] = event.Reason
	}
	assert.Equal(t, map[string]string{
		"owned": `it has the owner ConfigMap "owner"`, "plain": "left the set",
		e.namespace + "-shared":                  `ConfigMap "` + e.namespace + `-shared/foreign" is not of the set`,
		"charms." + e.namespace + ".example.com": "Charm." + e.namespace + `.example.com "` + e.namespace + `/foreign" is not of the set`,
	}, reasons)

	events, err = set.Apply(t.Context(), nil, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, want, outcomes(events))
	_, err = configMaps.Get(t.Context(), "theirs", nil)
	require.NoError(t, err, "of a different set")
	_, err = configMaps.Namespace(e.namespace+"-shared").Get(t.Context(), "plain", nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)

	events, err = set.Delete(t.Context(), &applyset.ApplyOptions{PruneShared: true})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"kept ConfigMap owned", "pruned Namespace " + e.namespace + "-shared",
		"pruned CustomResourceDefinition charms." + e.namespace + ".example.com"}, outcomes(events))
}

// TestSet_CheckPruneForbidsDeletion forbids the deletion of one of two members that left the set.
func TestSet_CheckPruneForbidsDeletion(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("checked")
	_, err := set.Apply(t.Context(), e.configMaps(t, "red", "a", "b", "c"), nil)
	require.NoError(t, err)
	e.requests.reset()
	var checked []string
	forbidden := errors.New("not planned")
	opts := &applyset.ApplyOptions{CheckPrune: func(object applyset.Reference, live *unstructured.Object) error {
		assert.Equal(t, object, applyset.ReferenceTo(live))
		checked = append(checked, object.Name)
		if object.Name == "b" {
			return forbidden
		}
		return nil
	}}
	events, err := set.Apply(t.Context(), e.configMaps(t, "blue", "a"), opts)
	require.ErrorIs(t, err, forbidden)
	assert.Empty(t, events)
	assert.Empty(t, writes(e.requests.reset()))
	assert.Equal(t, []string{"b", "c"}, checked)
}

// TestSet_ApplyAwaitsDeletion applies an object whose previous version is still being deleted.
func TestSet_ApplyAwaitsDeletion(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("terminating")
	objects := e.objects(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, finalizers: [example.com/test]}\n")
	_, err := set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	_, err = set.Apply(t.Context(), nil, nil)
	require.NoError(t, err)

	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	before, err := configMaps.Get(t.Context(), "a", nil)
	require.NoError(t, err)
	require.NotNil(t, before.GetDeletionTimestamp())
	done := make(chan error, 1)
	go func() {
		_, err := set.Apply(t.Context(), objects, nil)
		done <- err
	}()
	_, err = configMaps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
	require.NoError(t, err)
	require.NoError(t, <-done)
	after, err := configMaps.Get(t.Context(), "a", nil)
	require.NoError(t, err)
	assert.NotEqual(t, before.GetUID(), after.GetUID())
	assert.Nil(t, after.GetDeletionTimestamp())
	_, err = configMaps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
	require.NoError(t, err)
}

// TestSet_ApplyAwaitsDeletionOfForeignObject applies an object that is no member and is being deleted.
func TestSet_ApplyAwaitsDeletionOfForeignObject(t *testing.T) {
	e := newEnvironment(t)
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	before, err := configMaps.Create(t.Context(), e.objects(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, finalizers: [example.com/test]}\n")[0].Object, nil)
	require.NoError(t, err)
	_, err = configMaps.Delete(t.Context(), "a", nil)
	require.NoError(t, err)
	var released sync.WaitGroup
	released.Go(func() { // after the apply
		_, err := configMaps.Wait(t.Context(), "a", dynamic.Matches("applied", func(obj *unstructured.Object) (bool, error) {
			return obj.GetLabels()[applyset.PartOfLabel] != "", nil
		}))
		assert.NoError(t, err)
		_, err = configMaps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
		assert.NoError(t, err)
	})
	events, err := e.set("foreign").Apply(t.Context(), e.configMaps(t, "x", "a"), nil)
	released.Wait()
	require.NoError(t, err)
	assert.Equal(t, []string{"created ConfigMap a"}, outcomes(events))
	after, err := configMaps.Get(t.Context(), "a", nil)
	require.NoError(t, err)
	assert.NotEqual(t, before.GetUID(), after.GetUID())
}

// TestSet_DeleteKeepsParentWithData deletes a set whose parent has data.
func TestSet_DeleteKeepsParentWithData(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("parent")
	_, err := set.Apply(t.Context(), e.configMaps(t, "x", "a"), nil)
	require.NoError(t, err)
	secrets := client.Resource(t, e.Client, "secrets").Namespace(e.namespace)
	_, err = secrets.Patch(t.Context(), "parent", types.MergePatchType, []byte(`{"stringData":{"a":"b"}}`), nil)
	require.NoError(t, err)
	events, err := set.Delete(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"pruned ConfigMap a"}, outcomes(events))
	parent, err := secrets.Get(t.Context(), "parent", nil)
	require.NoError(t, err)
	assert.Empty(t, parent.GetLabels())
	assert.Empty(t, parent.GetAnnotations())
}

// TestSet_DeleteWithNamespaceOfParent deletes a set whose parent is in a Namespace of the set. The parent is deleted with the Namespace:
// the lock is renewed, and released, without a parent.
func TestSet_DeleteWithNamespaceOfParent(t *testing.T) {
	e := newEnvironment(t)
	const lockDuration = 1500 * time.Millisecond
	namespace := e.namespace + "-own"
	namespaces := client.Resource(t, e.Client, "namespaces")
	client.DeleteAtEnd(t, namespaces, namespace)
	set := applyset.New(e.Client, applyset.Parent{Namespace: namespace, Name: "own"}, &applyset.Options{LockDuration: lockDuration})
	_, err := set.Apply(t.Context(), e.objects(t, `
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE-own}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
`), nil)
	require.NoError(t, err)
	parent, err := client.Resource(t, e.Client, "secrets").Namespace(namespace).Get(t.Context(), "own", nil)
	require.NoError(t, err)
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(namespace)
	_, err = configMaps.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{
		"name": "held", "finalizers": []any{"example.com/test"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "own", "uid": string(parent.GetUID())}},
	}}}, nil)
	require.NoError(t, err)

	var released sync.WaitGroup
	released.Go(func() { // the Namespace stays for renewals without a parent
		_, err := client.Resource(t, e.Client, "secrets").Namespace(namespace).Wait(t.Context(), "own", dynamic.Deleted(parent.GetUID()))
		assert.NoError(t, err)
		time.Sleep(lockDuration)
		_, err = configMaps.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
		assert.NoError(t, err)
	})
	events, err := set.Delete(t.Context(), nil)
	released.Wait()
	require.NoError(t, err)
	assert.Equal(t, []string{"pruned ConfigMap a", "pruned Namespace " + namespace}, outcomes(events))
	_, err = namespaces.Get(t.Context(), namespace, nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// TestSet_PruneChecksAgainBeforeDeletion creates an object of others in a Namespace during the run. Its kind is the Event of a
// definition of the set.
func TestSet_PruneChecksAgainBeforeDeletion(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("late")
	shared := e.namespace + "-shared"
	group := e.namespace + ".example.com"
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "namespaces"), shared)
	_, err := set.Apply(t.Context(), e.objects(t, replace(pruned, "charms", "events", "charm", "event", "Charm", "Event")), nil)
	require.NoError(t, err)
	events, err := e.WaitForResources(t.Context(), "events."+group)
	require.NoError(t, err)

	outcome, err := set.Apply(t.Context(), nil, &applyset.ApplyOptions{OnEvent: func(event applyset.Event) {
		if event.Object.Namespace == shared {
			_, err := events[0].Namespace(shared).Create(t.Context(), &unstructured.Object{Object: map[string]any{
				"metadata": map[string]any{"name": "foreign"},
			}}, nil)
			assert.NoError(t, err)
		}
	}})
	require.NoError(t, err)
	reasons := map[string]string{}
	for _, event := range outcome {
		reasons[string(event.Action)+" "+event.Object.Name] = event.Reason
	}
	reason := "Event." + group + ` "` + shared + `/foreign" is not of the set`
	assert.Equal(t, reason, reasons["kept "+shared])
	assert.Equal(t, reason, reasons["kept events."+group])
	_, err = set.Delete(t.Context(), &applyset.ApplyOptions{PruneShared: true})
	require.NoError(t, err)
}
