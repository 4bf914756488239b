package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/plan"
)

// TestObjects_SecretValuesInErrors plans Secrets whose values are rejected. The cluster is its own copy for a new namespace.
func TestObjects_SecretValuesInErrors(t *testing.T) {
	e := newEnvironment(t)
	namespaces := client.Resource(t, e.Client, "namespaces")
	copies := 0
	for text, want := range map[string]string{
		`stringData: {password: 123456}`:                 ".stringData.password: expected string",
		`stringData: {password: {a: [123456]}, b: 1.5}`:  ": expected string",
		`data: "123456"`:                                 ".data: expected map",
		`data: {password: "123456 no base64"}`:           "illegal base64 data",
		`stringData: {"123456 as a key!": "123456"}`:     "is not shown",
		`stringData: {password: "123456"}, type: [5, 6]`: ".type: expected string",
	} {
		copies++
		more := fmt.Sprintf("%s-%d", e.namespace, copies)
		client.DeleteAtEnd(t, namespaces, more)
		for namespace, source := range map[string]plan.Source{e.namespace: plan.Server, more: plan.Copy} {
			planned := e.plan(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+more+`}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: `+namespace+`}, `+text+`}`,
				&plan.Options{Copy: func(context.Context) (*dynamic.Client, error) { return e.Client, nil }})
			require.Equal(t, source, planned.Changes[1].Source)
			loaded, _ := saved(t, planned)
			for _, p := range []*plan.Plan{planned, loaded} {
				require.Len(t, p.Changes, 2)
				assert.Equal(t, plan.Rejected, p.Changes[1].Action, text)
				assert.Contains(t, p.Changes[1].Reason, want)
				var output strings.Builder
				require.NoError(t, p.WriteText(&output, nil))
				require.NoError(t, p.WriteShort(&output))
				require.NoError(t, p.WriteJSON(&output, nil))
				fmt.Fprintln(&output, p.Err())
				assert.NotContains(t, output.String(), "123456")
			}
		}
	}
}

// TestObjects_ReadsByList reads objects by a list, unless the namespace has many others.
func TestObjects_ReadsByList(t *testing.T) {
	e := newEnvironment(t)
	var objects, others []string
	for i := range 20 {
		object := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}}", i)
		if others = append(others, object); i < 6 {
			objects = append(objects, object)
		}
	}
	text := strings.Join(objects, "\n---\n")
	_, err := e.plan(t, text, nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	e.reads = nil
	planned := e.plan(t, text, nil)
	assert.Equal(t, []string{""}, e.reads)
	require.Len(t, planned.Changes, 6)
	for _, change := range planned.Changes {
		assert.Equal(t, plan.Unchanged, change.Action)
	}
	_, err = e.plan(t, strings.Join(others, "\n---\n"), nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	e.reads = nil
	e.plan(t, text, nil)
	assert.ElementsMatch(t, []string{"", "/c0", "/c1", "/c2", "/c3", "/c4", "/c5"}, e.reads)
	e.reads = nil
	e.plan(t, strings.Join(objects[:2], "\n---\n"), nil)
	assert.ElementsMatch(t, []string{"/c0", "/c1"}, e.reads, "few objects")
}

// gems is a definition without conditions of readiness.
const gems = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gems.NAMESPACE.example.com}
spec:
  group: NAMESPACE.example.com
  scope: Namespaced
  names: {plural: gems, singular: gem, kind: Gem, listKind: GemList}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object}}}]
`

// TestObjects_ReadsDefinitionOfKubernetesGroup plans a custom resource in a group of a project of Kubernetes.
func TestObjects_ReadsDefinitionOfKubernetesGroup(t *testing.T) {
	e := newEnvironment(t)
	name := "gems." + e.namespace + ".k8s.io"
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "customresourcedefinitions"), name)
	definition := e.objects(t, strings.ReplaceAll(gems, ".example.com", ".k8s.io"))
	definition[0].SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, a test"})
	planned, err := plan.Objects(t.Context(), e.Client, definition, nil)
	require.NoError(t, err)
	_, err = planned.Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	_, err = e.WaitForResources(t.Context(), name)
	require.NoError(t, err)
	planned = e.plan(t, "{apiVersion: NAMESPACE.k8s.io/v1, kind: Gem, metadata: {name: one}}", nil)
	names := make([]string, len(planned.Reads))
	for i, read := range planned.Reads {
		names[i] = read.Object.Name
	}
	assert.ElementsMatch(t, []string{name, e.namespace}, names)
}

const aggregated = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.NAMESPACE.example.com}
spec:
  {group: NAMESPACE.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: api, namespace: NAMESPACE}}
---
{apiVersion: NAMESPACE.example.com/v1, kind: Gem, metadata: {name: namespaced, namespace: NAMESPACE}}
---
{apiVersion: NAMESPACE.example.com/v1, kind: GemClass, metadata: {name: cluster-scoped}}
`

// TestObjects_AggregatedKind plans objects of kinds that an APIService of the plan registers.
func TestObjects_AggregatedKind(t *testing.T) {
	e := newEnvironment(t)
	copied := func(context.Context) (*dynamic.Client, error) { return nil, errors.New("no copy serves them") }
	for _, set := range []*applyset.Set{nil, applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "set"}, nil)} {
		planned := e.plan(t, aggregated, &plan.Options{Set: set, Copy: copied})
		require.Len(t, planned.Changes, 3)
		for _, change := range planned.Changes[1:] {
			assert.Equal(t, plan.NotPlanned, change.Action)
			assert.Equal(t, `an aggregated API server serves it, registered by APIService "v1.`+e.namespace+`.example.com" of this plan`, change.Reason)
			want := ""
			if change.Object.Name == "namespaced" {
				want = e.namespace
			}
			assert.Equal(t, want, change.Object.Namespace)
		}
	}
	planned := e.plan(t, strings.ReplaceAll(aggregated, ".com/v1", ".com/v2"), nil)
	require.Len(t, planned.Changes, 3)
	assert.Equal(t, plan.Rejected, planned.Changes[0].Action, "of a different version")
}

const owners = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-more}}
`

// TestObjects_Cascade compares the planned deletes of others with the work of the garbage and namespace controllers.
func TestObjects_Cascade(t *testing.T) {
	cluster.NeedComponents(t, "kube-controller-manager")
	e := newEnvironment(t)
	set := applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "set"}, nil)
	events, err := set.Apply(t.Context(), e.objects(t, owners), nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "namespaces"), e.namespace+"-more")
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	create := func(resource *dynamic.Resource, name string, ownerNames ...string) {
		t.Helper()
		obj := e.objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", ownerReferences: []}}")[0].Object
		var refs []any
		for _, owner := range ownerNames {
			live, err := configMaps.Get(t.Context(), owner, nil)
			require.NoError(t, err)
			refs = append(refs, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": string(live.GetUID())})
		}
		obj.Object["metadata"].(map[string]any)["ownerReferences"] = refs
		_, err := resource.Create(t.Context(), obj, nil)
		require.NoError(t, err)
	}
	create(configMaps, "owned", "owner")
	create(configMaps, "below", "owned")
	create(configMaps, "shared", "owner", "kept")
	create(configMaps.Namespace(e.namespace+"-more"), "content")
	require.Len(t, events, 3)

	remaining := "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}"
	_, err = set.Apply(t.Context(), e.objects(t, remaining), &applyset.ApplyOptions{NoPrune: true})
	require.NoError(t, err)
	planned := e.plan(t, remaining, &plan.Options{Set: set})
	cascades := map[string][]string{}
	for _, change := range planned.Changes {
		for _, ref := range change.Cascade {
			if ref.Name != "kube-root-ca.crt" && ref.Kind.Kind != "ServiceAccount" { // of every namespace
				cascades[string(change.Action)+" "+change.Object.Name] = append(cascades[string(change.Action)+" "+change.Object.Name], ref.Name)
			}
		}
	}
	assert.Equal(t, map[string][]string{"prune owner": {"below", "owned"}}, cascades, "the namespace has objects of others and is kept")
	_, err = planned.Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	for _, name := range []string{"owned", "below"} {
		_, err = configMaps.Wait(t.Context(), name, dynamic.Deleted(""))
		require.NoError(t, err)
	}
	_, err = configMaps.Get(t.Context(), "shared", nil)
	assert.False(t, apierrors.IsNotFound(err), "it has an owner")
}
