package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// TestPlan_ApplyDeletesOnlyPlannedMembers plans a set with a kept Namespace. After the plan a member is restored from a backup, or the
// reason to keep the Namespace ends.
func TestPlan_ApplyDeletesOnlyPlannedMembers(t *testing.T) {
	for name, restores := range map[string]bool{"restored member": true, "end of a reason to keep": false} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t)
			parent := applyset.Parent{Namespace: e.namespace, Name: "set"}
			set := applyset.New(e.Client, parent, nil)
			namespaces := client.Resource(t, e.Client, "namespaces")
			more := e.namespace + "-more"
			client.DeleteAtEnd(t, namespaces, more)
			_, err := set.Apply(t.Context(), e.objects(t, `{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-more}}`), nil)
			require.NoError(t, err)
			configMap := func(name, label string) *unstructured.Object {
				return e.objects(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, labels: {applyset.kubernetes.io/part-of: `+label+`}}}`)[0].Object
			}
			configMaps := client.Resource(t, e.Client, "configmaps")
			_, err = configMaps.Namespace(more).Create(t.Context(), configMap("foreign", "different"), nil)
			require.NoError(t, err)
			planned, _ := saved(t, e.plan(t, several, &plan.Options{Set: set}))
			want := applyset.Reference{Kind: schema.GroupKind{Kind: "Namespace"}, Name: more}
			if restores {
				want = applyset.Reference{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: e.namespace, Name: "restored"}
				_, err = configMaps.Namespace(e.namespace).Create(t.Context(), configMap("restored", parent.ID()), nil)
			} else {
				_, err = configMaps.Namespace(more).Delete(t.Context(), "foreign", nil)
			}
			require.NoError(t, err)
			e.writes = nil

			_, err = planned.Apply(t.Context(), e.Client, nil)
			var changed *plan.ChangedError
			require.ErrorAs(t, err, &changed)
			assert.Equal(t, plan.ChangedError{Object: want, Change: "became prunable"}, *changed)
			assert.Empty(t, e.writes)
		})
	}
}

// TestPlan_ApplyUsesOptionsOfSet applies an object that depends on an object with a readiness rule. Without the rule the apply waits.
func TestPlan_ApplyUsesOptionsOfSet(t *testing.T) {
	e := newEnvironment(t)
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "customresourcedefinitions"), "gems."+e.namespace+".example.com")
	_, err := e.plan(t, gems, nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	_, err = e.WaitForResources(t.Context(), "gems."+e.namespace+".example.com")
	require.NoError(t, err)
	opts := &applyset.Options{Rules: []readiness.Rule{{Group: e.namespace + ".example.com", Kind: "Gem"}}}
	for _, isLoaded := range []bool{false, true} {
		name := fmt.Sprintf("loaded-%t", isLoaded)
		planned := e.plan(t, strings.ReplaceAll(`
{apiVersion: NAMESPACE.example.com/v1, kind: Gem, metadata: {name: OBJECT}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: OBJECT, annotations: {config.kubernetes.io/depends-on: NAMESPACE.example.com/namespaces/NAMESPACE/Gem/OBJECT}}}
`, "OBJECT", name), &plan.Options{Set: applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: name}, opts)})
		apply := &plan.ApplyOptions{}
		if isLoaded {
			planned, _ = saved(t, planned)
			apply.Set = opts
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err = planned.Apply(ctx, e.Client, apply)
		cancel()
		require.NoError(t, err)
	}
}

// TestObjects_ObjectOfDifferentSet plans a member of a different set, after a new ServiceAccount.
func TestObjects_ObjectOfDifferentSet(t *testing.T) {
	e := newEnvironment(t)
	set := func(name string) *applyset.Set {
		return applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: name}, nil)
	}
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {color: COLOR}}"
	first := e.objects(t, strings.ReplaceAll(text, "COLOR", "red"))
	_, err := set("first").Apply(t.Context(), first, nil)
	require.NoError(t, err)
	for _, force := range []bool{false, true} {
		for _, color := range []string{"red", "blue"} { // blue would be a replace
			planned := e.plan(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: new}}\n---\n"+strings.ReplaceAll(text, "COLOR", color),
				&plan.Options{Set: set("second"), ForceConflicts: force})
			require.Len(t, planned.Changes, 2)
			change := planned.Changes[1]
			assert.Equal(t, plan.Rejected, change.Action)
			assert.Contains(t, change.Reason, `of manager "applyset/first.`)
			var owned *applyset.OwnedError
			require.ErrorAs(t, planned.Err(), &owned)
			assert.Equal(t, set("first").Parent().ID(), owned.ID)
			var output strings.Builder
			require.NoError(t, planned.WriteText(&output, nil))
			assert.Contains(t, output.String(), "it belongs to the set")
		}
	}
}

// TestPlan_ReplaceInLockedSet replaces an object of a set while a different run has the lock, and afterwards.
func TestPlan_ReplaceInLockedSet(t *testing.T) {
	e := newEnvironment(t)
	set := applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "set"}, nil)
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {color: red}}"
	_, err := set.Apply(t.Context(), e.objects(t, text), nil)
	require.NoError(t, err)
	lock := func(isReleased bool) {
		t.Helper()
		record := fmt.Sprintf(`{"holder":"other","id":"x","duration":"1h","renewed":"2026-01-01T00:00:00Z","released":%t}`, isReleased)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"applyset.anykind.dev/lock": record}}})
		require.NoError(t, err)
		_, err = client.Resource(t, e.Client, "secrets").Namespace(e.namespace).Patch(t.Context(), "set", types.MergePatchType, patch, nil)
		require.NoError(t, err)
	}
	lock(false)
	planned := e.plan(t, strings.ReplaceAll(text, "red", "blue"), &plan.Options{Set: set})
	e.writes = nil
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = planned.Apply(ctx, e.Client, &plan.ApplyOptions{Replace: true})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, e.writes)

	lock(true)
	planned = e.plan(t, strings.ReplaceAll(text, "red", "blue"), &plan.Options{Set: set})
	events, err := planned.Apply(t.Context(), e.Client, &plan.ApplyOptions{Replace: true})
	require.NoError(t, err)
	require.Len(t, events, 1)
	assert.Equal(t, applyset.Created, events[0].Action)
	assert.NotEqual(t, planned.Changes[0].Live.GetUID(), events[0].Live.GetUID())
}

// TestPlan_ApplyOfSetAfterLateChange changes an object right before its apply is sent.
func TestPlan_ApplyOfSetAfterLateChange(t *testing.T) {
	const text = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, labels: {color: red}}, spec: {serviceName: a, replicas: 0,
		selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}`
	for subresource, patch := range map[string]string{"status": `{"status":{"replicas":7}}`, "": `{"metadata":{"labels":{"size":"large"}}}`} {
		t.Run(subresource, func(t *testing.T) {
			e := newEnvironment(t)
			set := applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "set"}, nil)
			_, err := set.Apply(t.Context(), e.objects(t, text), nil)
			require.NoError(t, err)
			planned := e.plan(t, strings.ReplaceAll(text, "red", "blue"), &plan.Options{Set: set})
			statefulSets := client.Resource(t, e.Client, "statefulsets").Namespace(e.namespace)
			changed := statefulSets
			if subresource != "" {
				changed = statefulSets.Subresource(subresource)
			}
			var once sync.Once
			e.onWrite = func(request *http.Request) {
				if strings.HasSuffix(request.URL.Path, "/statefulsets/a") && strings.Contains(request.Header.Get("Content-Type"), "apply-patch") {
					once.Do(func() {
						_, err := changed.Patch(t.Context(), "a", types.MergePatchType, []byte(patch), nil)
						assert.NoError(t, err)
					})
				}
			}
			_, err = planned.Apply(t.Context(), e.Client, nil)
			live, getErr := statefulSets.Get(t.Context(), "a", nil)
			require.NoError(t, getErr)
			if subresource == "status" {
				require.NoError(t, err)
				assert.Equal(t, "blue", live.GetLabels()["color"])
				return
			}
			var outdated *plan.ChangedError
			require.ErrorAs(t, err, &outdated)
			assert.Equal(t, "was changed", outdated.Change)
			assert.Equal(t, "red", live.GetLabels()["color"])
		})
	}
}
