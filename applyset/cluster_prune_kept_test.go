package applyset_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

const further = `
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE-more}
`

// keepsNamespace applies a set with a further Namespace, calls prepare, and expects that an apply without objects keeps the Namespace.
func (e *environment) keepsNamespace(t *testing.T, prepare func(namespace string)) (reason string) {
	t.Helper()
	set := e.set("namespace")
	namespace := e.namespace + "-more"
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "namespaces"), namespace)
	_, err := set.Apply(t.Context(), e.objects(t, further), nil)
	require.NoError(t, err)
	prepare(namespace)
	events, err := set.Apply(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"kept Namespace " + namespace}, outcomes(events))
	return events[0].Reason
}

// createDefinition creates a definition by a different client: e does not see it before its next discovery.
func (e *environment) createDefinition(t *testing.T, definition, name string) *dynamic.Resource {
	t.Helper()
	others := client.Connect(t, "admin")
	definitions := client.Resource(t, others, "customresourcedefinitions")
	client.DeleteAtEnd(t, definitions, name)
	_, err := definitions.Create(t.Context(), e.objects(t, definition)[0].Object, nil)
	require.NoError(t, err)
	resources, err := others.WaitForResources(t.Context(), name)
	require.NoError(t, err)
	return resources[0]
}

const gems = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gems.NAMESPACE.example.com
  labels: {applyset.kubernetes.io/is-parent-type: "true"}
spec:
  group: NAMESPACE.example.com
  scope: Namespaced
  names: {plural: gems, singular: gem, kind: Gem, listKind: GemList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {data: {type: string}}}}}]
`

func TestSet_PruneKeepsNamespaceWithNewKind(t *testing.T) {
	e := newEnvironment(t)
	reason := e.keepsNamespace(t, func(namespace string) {
		resource := e.createDefinition(t, gems, "gems."+e.namespace+".example.com")
		_, err := resource.Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata": map[string]any{"name": "foreign"},
		}}, nil)
		require.NoError(t, err)
	})
	assert.Contains(t, reason, `/foreign" is not of the set`)
}

// TestSet_PruneKeepsNamespaceOfUnavailableGroup prunes while an aggregated API server does not respond.
func TestSet_PruneKeepsNamespaceOfUnavailableGroup(t *testing.T) {
	e := newEnvironment(t)
	group := e.namespace + ".example.com"
	services := client.Resource(t, e.Client, "apiservices")
	reason := e.keepsNamespace(t, func(string) {
		t.Cleanup(func() { e.awaitGroup(context.WithoutCancel(t.Context()), t, group, false) }) // after the deletion: it would keep the Namespaces of further tests
		client.DeleteAtEnd(t, services, "v1."+group)
		_, err := services.Create(t.Context(), e.objects(t, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.NAMESPACE.example.com}
spec:
  {group: NAMESPACE.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
  service: {name: api, namespace: NAMESPACE}}
`)[0].Object, nil)
		require.NoError(t, err)
		e.awaitGroup(t.Context(), t, group, true)
	})
	assert.Equal(t, "the server does not serve "+group+"/v1 at present, of which it may contain objects", reason)
}

// awaitGroup refreshes discovery until it has, or does not have, an unavailable group.
func (e *environment) awaitGroup(ctx context.Context, t *testing.T, group string, wanted bool) {
	t.Helper()
	version := schema.GroupVersion{Group: group, Version: "v1"}
	for {
		snapshot, err := e.Discovery().Refresh(ctx)
		if !assert.NoError(t, err) {
			return
		}
		state, found := find(snapshot, version)
		if found == wanted && (!found || !state.Healthy()) {
			return
		}
	}
}

func find(snapshot *discovery.Snapshot, version schema.GroupVersion) (*discovery.Version, bool) {
	for name, state := range snapshot.Versions() {
		if name == version {
			return state, true
		}
	}
	return nil, false
}

// TestSet_PruneKeepsEndpointsOfService applies a set that also has Endpoints of its own. The Endpoints of a Service have its labels.
func TestSet_PruneKeepsEndpointsOfService(t *testing.T) {
	cluster.NeedComponents(t, cluster.ControllerManager)
	e := newEnvironment(t)
	set := e.set("endpoints")
	objects := e.objects(t, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: database}
subsets: [{addresses: [{ip: 10.1.2.3}], ports: [{port: 5432}]}]
`)
	_, err := set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	endpoints := client.Resource(t, e.Client, "endpoints").Namespace(e.namespace)
	live, err := endpoints.Wait(t.Context(), "web", dynamic.Exists())
	require.NoError(t, err)
	require.Contains(t, live.GetLabels(), applyset.PartOfLabel)
	events, err := set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"unchanged Service web", "unchanged Endpoints database"}, outcomes(events))
}

// TestSet_PruneKeepsObjectOfTwoGroups changes the group of an Event in the manifest: both groups have the same object.
func TestSet_PruneKeepsObjectOfTwoGroups(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("events")
	_, err := set.Apply(t.Context(), e.objects(t, `
apiVersion: v1
kind: Event
metadata: {name: one}
involvedObject: {kind: Namespace, name: NAMESPACE, namespace: NAMESPACE}
reason: Test
type: Normal
`), nil)
	require.NoError(t, err)
	for range 2 {
		events, err := set.Apply(t.Context(), e.objects(t, `
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: one}
regarding: {kind: Namespace, name: NAMESPACE, namespace: NAMESPACE}
reason: Test
type: Normal
`), nil)
		require.NoError(t, err)
		assert.Contains(t, outcomes(events), "kept Event one")
		_, err = client.Resource(t, e.Client, "events").Namespace(e.namespace).Get(t.Context(), "one", nil)
		require.NoError(t, err)
	}
}

// TestSet_KeepsDefinitionOfParent applies and deletes a set whose parent is a custom resource. Its kind is defined by a member, and
// its field data is no map.
func TestSet_KeepsDefinitionOfParent(t *testing.T) {
	e := newEnvironment(t)
	name := "gems." + e.namespace + ".example.com"
	resource := e.createDefinition(t, gems, name)
	parent := applyset.Parent{Kind: schema.GroupKind{Group: e.namespace + ".example.com", Kind: "Gem"}, Namespace: e.namespace, Name: "main"}
	_, err := resource.Namespace(e.namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{
			"name": "main", "labels": map[string]any{"applyset.kubernetes.io/id": parent.ID()},
			"annotations": map[string]any{"applyset.kubernetes.io/tooling": "anykind/v1", "applyset.kubernetes.io/contains-group-kinds": ""},
		},
		"data": "text",
	}}, nil)
	require.NoError(t, err)
	set := applyset.New(e.Client, parent, nil)
	_, err = set.Apply(t.Context(), e.objects(t, gems), &applyset.ApplyOptions{Conflicts: applyset.ConflictForce})
	require.NoError(t, err)

	for _, work := range []func() ([]applyset.Event, error){
		func() ([]applyset.Event, error) {
			return set.Apply(t.Context(), nil, &applyset.ApplyOptions{PruneShared: true})
		},
		func() ([]applyset.Event, error) {
			return set.Delete(t.Context(), &applyset.ApplyOptions{PruneShared: true})
		},
	} {
		events, err := work()
		require.NoError(t, err)
		require.Equal(t, []string{"kept CustomResourceDefinition " + name}, outcomes(events))
		assert.Equal(t, "it defines the kind of the parent of the set", events[0].Reason)
		_, err = resource.Namespace(e.namespace).Get(t.Context(), "main", nil)
		require.NoError(t, err)
	}
}
