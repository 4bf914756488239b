package controller_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/controllertest"
	"github.com/anykind/anykind/unstructured"
)

func createWidget(t *testing.T, of *dynamic.Resource, name string) *unstructured.Object {
	t.Helper()
	obj, err := of.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"size": int64(1)},
	}}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		if _, err := of.Delete(context.WithoutCancel(t.Context()), name, nil); !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	})
	return obj
}

// TestStatus_OfCustomResource registers one kind for all.
func TestStatus_OfCustomResource(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	of := widgets(t, client, namespace)
	for name, test := range map[string]func(*testing.T, *dynamic.Resource){
		"replaced and merged": testStatusReplacedAndMerged,
		"observedGeneration":  testStatusObservedGeneration,
		"merge patch":         testPatchStatusMerges,
		"object out of date":  testStatusOfStaleObject,
		"many writers":        testPatchStatusOfManyWriters,
		"object made anew":    testStatusOfRecreatedObject,
		"conditions":          testConditionsTransitionTime,
	} {
		t.Run(name, func(t *testing.T) { test(t, of) })
	}
}

func testStatusReplacedAndMerged(t *testing.T, of *dynamic.Resource) {
	obj := createWidget(t, of, "web")

	set, err := controller.SetStatus(t.Context(), of.AllNamespaces(), obj, map[string]any{"ready": 1, "old": map[string]string{"a": "b"}})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"ready": int64(1), "old": map[string]any{"a": "b"}, "observedGeneration": int64(1)}, set.Object["status"])
	assert.Equal(t, set, get(t, of, "web"))
	assert.NotContains(t, obj.Object, "status", "the caller's object stays as it is")

	same, err := controller.SetStatus(t.Context(), of, set, map[string]any{"ready": int32(1), "old": map[string]any{"a": "b"}})
	require.NoError(t, err)
	assert.Equal(t, set, same, "the server stores nothing new, and no watch has an event")

	replaced, err := controller.SetStatus(t.Context(), of, set, map[string]any{"ready": int64(2)})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"ready": int64(2), "observedGeneration": int64(1)}, replaced.Object["status"])

	patch(t, of, "web", `{"spec":{"size":2}}`)
	merged, err := controller.PatchStatus(t.Context(), of, get(t, of, "web"), map[string]any{"phase": "Up", "ready": nil})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"phase": "Up", "observedGeneration": int64(2)}, merged.Object["status"])

	same, err = controller.PatchStatus(t.Context(), of, merged, map[string]any{"phase": "Up", "ready": nil})
	require.NoError(t, err)
	assert.Equal(t, merged, same)
}

func testStatusOfStaleObject(t *testing.T, of *dynamic.Resource) {
	ready := map[string]any{"phase": "Ready", "list": []any{"a"}, "map": map[string]any{"k": "v"}, "empty": map[string]any{}, "observedGeneration": nil}
	for name, tc := range map[string]struct {
		write           func(context.Context, *dynamic.Resource, *unstructured.Object, map[string]any) (*unstructured.Object, error)
		meanwhile, want map[string]any
		status          map[string]any
	}{
		"set what obj has": {controller.SetStatus, map[string]any{"phase": "Working", "step": int64(1)},
			map[string]any{"phase": "Ready", "list": []any{"a"}, "map": map[string]any{"k": "v"}, "empty": map[string]any{}}, ready},
		"patch what obj has": {controller.PatchStatus, map[string]any{"phase": "Working", "step": int64(1)},
			map[string]any{"phase": "Ready", "step": int64(1)}, map[string]any{"phase": "Ready"}},
		"patch what obj has and more": {controller.PatchStatus, map[string]any{"phase": "Working"},
			map[string]any{"phase": "Ready", "step": int64(2)}, map[string]any{"phase": "Ready", "step": 2}},
		"patch in a map": {controller.PatchStatus, map[string]any{"map": map[string]any{"k": "other", "l": "other"}},
			map[string]any{"map": map[string]any{"k": "v", "l": "other"}}, map[string]any{"map": map[string]any{"k": "v"}}},
		"patch in a map that is gone": {controller.PatchStatus, map[string]any{},
			map[string]any{"map": map[string]any{"k": "v"}, "empty": map[string]any{}}, map[string]any{"map": map[string]any{"k": "v"}, "empty": map[string]any{}}},
		"patch a list": {controller.PatchStatus, map[string]any{"list": []any{"b", "c"}},
			map[string]any{"list": []any{"a"}}, map[string]any{"list": []any{"a"}}},
		"patch a value that is a map by now": {controller.PatchStatus, map[string]any{"phase": map[string]any{"old": "other"}},
			map[string]any{"phase": map[string]any{"old": "other", "new": "v"}}, map[string]any{"phase": map[string]any{"new": "v"}}},
		"remove what obj has not": {controller.PatchStatus, map[string]any{"phase": "Ready", "step": int64(1)},
			map[string]any{"phase": "Ready"}, map[string]any{"step": nil}},
		"remove what is gone": {controller.PatchStatus, map[string]any{"step": int64(1)},
			map[string]any{"step": int64(1)}, map[string]any{"phase": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			stale, err := controller.SetStatus(t.Context(), of, createWidget(t, of, "web"), ready)
			require.NoError(t, err)
			tc.status["observedGeneration"] = nil
			tc.meanwhile["observedGeneration"] = nil
			_, err = controller.SetStatus(t.Context(), of, stale, tc.meanwhile)
			require.NoError(t, err)
			written, err := tc.write(t.Context(), of, stale, tc.status)
			require.NoError(t, err)
			assert.Equal(t, tc.want, written.Object["status"])
			assert.Equal(t, written, get(t, of, "web"))
		})
	}
}

// testPatchStatusOfManyWriters has writers with one stale object write fields of their own at the same time.
func testPatchStatusOfManyWriters(t *testing.T, of *dynamic.Resource) {
	stale := createWidget(t, of, "web")
	var all sync.WaitGroup
	want := map[string]any{"observedGeneration": int64(1)}
	for n := range 8 {
		field := fmt.Sprint("field", n)
		want[field] = map[string]any{"n": int64(4)}
		all.Go(func() {
			for value := range 5 {
				written, err := controller.PatchStatus(t.Context(), of, stale, map[string]any{field: map[string]any{"n": value}})
				assert.NoError(t, err)
				got, _, _ := unstructured.Get[int64](written, "status", field, "n")
				assert.EqualValues(t, value, got)
			}
		})
	}
	all.Wait()
	assert.Equal(t, want, get(t, of, "web").Object["status"])
}

func testStatusObservedGeneration(t *testing.T, of *dynamic.Resource) {
	obj := createWidget(t, of, "web")
	patch(t, of, "web", `{"spec":{"size":2}}`) // generation 2, which the controller has not seen

	for name, tc := range map[string]struct {
		status map[string]any
		want   any
	}{
		"the one that was seen": {map[string]any{}, int64(1)},
		"another":               {map[string]any{"observedGeneration": 7}, int64(7)},
		"none":                  {map[string]any{"observedGeneration": nil}, nil},
	} {
		for verb, write := range map[string]func() (*unstructured.Object, error){
			"set":   func() (*unstructured.Object, error) { return controller.SetStatus(t.Context(), of, obj, tc.status) },
			"patch": func() (*unstructured.Object, error) { return controller.PatchStatus(t.Context(), of, obj, tc.status) },
		} {
			obj = get(t, of, "web")
			obj.SetGeneration(1)
			_, err := write()
			require.NoError(t, err)
			status, _ := get(t, of, "web").Object["status"].(map[string]any)
			assert.Equal(t, tc.want, status["observedGeneration"], "%s %s", verb, name)
		}
	}
}

func testPatchStatusMerges(t *testing.T, of *dynamic.Resource) {
	for name, tc := range map[string]struct{ before, meanwhile, patch, want map[string]any }{
		"no status was there": {nil, map[string]any{"a": "other", "b": "other"}, map[string]any{"a": "new"},
			map[string]any{"a": "new", "b": "other"}},
		"no map was there": {map[string]any{"a": "x"}, map[string]any{"m": map[string]any{"k": "other"}}, map[string]any{"m": map[string]any{"l": "new"}},
			map[string]any{"m": map[string]any{"k": "other", "l": "new"}}},
		"a map was there": {map[string]any{"m": map[string]any{"k": "x"}}, map[string]any{"a": "other"}, map[string]any{"m": map[string]any{"l": "new"}},
			map[string]any{"a": "other", "m": map[string]any{"l": "new"}}},
		"what is to be removed was": {map[string]any{"a": "x", "b": "x"}, map[string]any{"b": "x"}, map[string]any{"a": nil, "b": "new"},
			map[string]any{"b": "new"}},
		"names that a pointer escapes": {map[string]any{"a/b~c": "x"}, map[string]any{"a/b~c": "other"}, map[string]any{"a/b~c": "new", "n": map[string]any{"x": nil, "y": int64(1)}},
			map[string]any{"a/b~c": "new", "n": map[string]any{"y": int64(1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := createWidget(t, of, "web")
			plain := func(status map[string]any) map[string]any {
				filled := maps.Clone(status)
				filled["observedGeneration"] = nil
				return filled
			}
			var err error
			if tc.before != nil {
				obj, err = controller.SetStatus(t.Context(), of, obj, plain(tc.before))
				require.NoError(t, err)
			}
			_, err = controller.SetStatus(t.Context(), of, obj, plain(tc.meanwhile))
			require.NoError(t, err)
			_, err = controller.PatchStatus(t.Context(), of, obj, plain(tc.patch))
			require.NoError(t, err)
			assert.Equal(t, tc.want, get(t, of, "web").Object["status"])
			_, err = of.Delete(t.Context(), "web", nil)
			require.NoError(t, err)
		})
	}
}

func TestSetStatus_RejectedBySchema(t *testing.T) {
	client, namespace := controllertest.NewNamespace(t)
	deployment := controllertest.Named("apps/v1", "Deployment", namespace, "web", "")
	deployment.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
		},
	}
	deployments := controllertest.Resource(t, client, "deploy")
	deployment, err := deployments.Create(t.Context(), deployment, nil)
	require.NoError(t, err)
	_, err = controller.SetStatus(t.Context(), deployments, deployment, map[string]any{"replicas": -1})
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, `write status of deployments.apps "web": `)
}

func testStatusOfRecreatedObject(t *testing.T, of *dynamic.Resource) {
	obj := createWidget(t, of, "web")
	_, err := of.Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	_, err = controller.SetStatus(t.Context(), of, obj, map[string]any{"ready": true})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)

	createWidget(t, of, "web")
	_, err = controller.SetStatus(t.Context(), of, obj, map[string]any{"ready": true})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = controller.PatchStatus(t.Context(), of, obj, map[string]any{"ready": true})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.NotContains(t, get(t, of, "web").Object, "status")
}

func TestSetStatus_RejectsInvalidValues(t *testing.T) {
	client := controllertest.Connect(t)
	pods := controllertest.Resource(t, client, "pods")
	obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	_, err := controller.SetStatus(t.Context(), pods, obj, nil)
	assert.EqualError(t, err, `write status of pods "web": the object has no uid (the server sets it)`)
	obj.SetUID("u")
	_, err = controller.PatchStatus(t.Context(), pods, obj, map[string]any{"bad": make(chan int)})
	assert.EqualError(t, err, `write status of pods "web": .status.bad: cannot encode chan int`)
	var refused *dynamic.InvalidRequestError
	_, err = controller.SetStatus(t.Context(), controllertest.Resource(t, client, "configmaps"), obj, nil)
	assert.ErrorAs(t, err, &refused, "a kind without status")
}

func testConditionsTransitionTime(t *testing.T, of *dynamic.Resource) {
	obj := createWidget(t, of, "web")
	long := metav1.NewTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)))
	const longText = "2020-01-02T02:04:05Z"

	set := func(conditions ...metav1.Condition) []any {
		t.Helper()
		var err error
		obj, err = controller.SetStatus(t.Context(), of, obj, map[string]any{"conditions": controller.MergeConditions(obj, conditions...)})
		require.NoError(t, err)
		all, _, err := unstructured.Get[[]any](obj, "status", "conditions")
		require.NoError(t, err)
		return all
	}
	all := set(
		metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Starting", LastTransitionTime: long},
		metav1.Condition{Type: "Synced", Status: metav1.ConditionTrue, Reason: "Done", Message: "all of it", LastTransitionTime: long, ObservedGeneration: 7},
	)
	synced := map[string]any{"type": "Synced", "status": "True", "reason": "Done", "message": "all of it", "lastTransitionTime": longText, "observedGeneration": int64(7)}
	assert.Equal(t, []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "Starting", "message": "", "lastTransitionTime": longText, "observedGeneration": int64(1)},
		synced,
	}, all)

	all = set(metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Pulling", Message: "1 of 3"})
	assert.Equal(t, []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "Pulling", "message": "1 of 3", "lastTransitionTime": longText, "observedGeneration": int64(1)},
		synced,
	}, all, "the status is the same, and so is its time")

	all = set(metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Up"})
	ready, _ := all[0].(map[string]any)
	when, err := time.Parse(time.RFC3339, ready["lastTransitionTime"].(string))
	require.NoError(t, err)
	assert.True(t, when.After(long.Time))
	assert.Equal(t, synced, all[1])
}

func TestMergeConditions_KeepsUnknownFields(t *testing.T) {
	entry := map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "then", "lastProbeTime": "now"}
	obj := &unstructured.Object{Object: map[string]any{"status": map[string]any{"conditions": []any{entry, "odd"}}}}
	before := obj.DeepCopy()
	all := controller.MergeConditions(obj, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Up"})
	assert.Equal(t, []any{
		map[string]any{"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": "then", "lastProbeTime": "now"}, "odd",
	}, all)
	assert.Equal(t, before, obj)

	obj.Object["status"] = "odd"
	assert.Len(t, controller.MergeConditions(obj, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue}), 1)
	assert.Empty(t, controller.MergeConditions(obj))
}
