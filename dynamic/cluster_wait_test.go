package dynamic_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// startWait runs Wait in the background. seen is closed when the last condition is first evaluated.
func startWait(t *testing.T, of *dynamic.Resource, name string, conditions ...dynamic.WaitCondition) (seen chan struct{}, result func() (*unstructured.Object, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	seen = make(chan struct{})
	done := make(chan struct{})
	var isSeen atomic.Bool
	conditions = append(conditions, dynamic.Matches("", func(*unstructured.Object) (bool, error) {
		if isSeen.CompareAndSwap(false, true) {
			close(seen)
		}
		return true, nil
	}))
	var obj *unstructured.Object
	var err error
	go func() {
		defer close(done)
		obj, err = of.Wait(ctx, name, conditions...)
	}()
	return seen, func() (*unstructured.Object, error) { <-done; return obj, err }
}

func patched(t *testing.T, of *dynamic.Resource, name, change string) {
	t.Helper()
	_, err := of.Patch(t.Context(), name, types.MergePatchType, []byte(change), nil)
	require.NoError(t, err)
}

func TestWait_CreatedChangedDeleted(t *testing.T) {
	t.Parallel() // after the tests that restart the server
	client, namespace := newNamespace(t)
	of := widgets(t, client, namespace)
	limit, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()

	gone, err := of.Wait(limit, "one", dynamic.Deleted())
	require.NoError(t, err)
	assert.Nil(t, gone)

	seen, ready := startWait(t, of, "one", dynamic.Exists(), dynamic.Condition("Ready"), dynamic.FieldEquals("spec.replicas", 2))
	created, err := of.Create(t.Context(), named("one", map[string]any{"replicas": int64(1)}), nil)
	require.NoError(t, err)
	<-seen
	patched(t, of.Subresource("status"), "one", `{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`)
	patched(t, of, "one", `{"spec":{"replicas":2},"metadata":{"finalizers":["example.com/hold"]}}`) // the condition is now of an old generation
	patched(t, of.Subresource("status"), "one", `{"status":{"observedGeneration":2}}`)
	obj, err := ready()
	require.NoError(t, err)
	assert.Equal(t, created.GetUID(), obj.GetUID())
	assert.Equal(t, int64(2), obj.GetGeneration())
	observed, _, err := unstructured.Get[int64](obj, "status", "observedGeneration")
	require.NoError(t, err)
	assert.Equal(t, int64(2), observed)

	_, err = of.Delete(t.Context(), "one", nil)
	require.NoError(t, err)
	short, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err = of.Wait(short, "one", dynamic.Deleted())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "with the finalizers example.com/hold")
	patched(t, of, "one", `{"metadata":{"finalizers":null}}`)
	_, err = of.Wait(limit, "one", dynamic.Deleted())
	require.NoError(t, err)
}

func TestWait_NeedsOnlyListAndWatch(t *testing.T) {
	t.Parallel() // after the tests that restart the server
	client, namespace := newNamespace(t)
	admins := resource(t, client, "cm").Namespace(namespace)
	grant(t, client, namespace, map[string][]any{"mine": {"list", "watch"}, "still": {"list"}})
	mine := resource(t, connect(t, "limited"), "cm").Namespace(namespace)
	allowed(t, mine, "mine")

	seen, done := startWait(t, mine, "mine", dynamic.FieldEquals("data.a", "2"))
	_, err := admins.Create(t.Context(), configMap("mine", map[string]any{"a": "1"}), nil)
	require.NoError(t, err)
	<-seen
	patched(t, admins, "mine", `{"data":{"a":"2"}}`)
	_, err = done()
	require.NoError(t, err)

	_, err = mine.Wait(t.Context(), "yours", dynamic.Exists())
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	_, err = mine.Wait(t.Context(), "still", dynamic.Exists())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `cannot watch resource "configmaps"`)
}

// grant permits the user "limited" the verb on ConfigMaps of these names.
func grant(t *testing.T, client *dynamic.Client, namespace string, verbs map[string][]any) {
	t.Helper()
	var rules []any
	for name, may := range verbs {
		rules = append(rules, map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{name}, "verbs": may})
	}
	grantRule(t, client, namespace, rules...)
}

// grantRule grants the rules to the user "limited" in a namespace.
func grantRule(t *testing.T, client *dynamic.Client, namespace string, rules ...any) {
	t.Helper()
	_, err := resource(t, client, "roles").Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "reader"}, "rules": rules,
	}}, nil)
	require.NoError(t, err)
	_, err = resource(t, client, "rolebindings").Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "reader"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
		"subjects": []any{map[string]any{"kind": "User", "name": "limited", "apiGroup": "rbac.authorization.k8s.io"}},
	}}, nil)
	require.NoError(t, err)
}

// allowed waits until the permission to list the object has taken effect.
func allowed(t *testing.T, of *dynamic.Resource, name string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, err := of.Named(name).ListPage(t.Context(), nil)
		if !apierrors.IsForbidden(err) {
			return
		}
		require.True(t, time.Now().Before(deadline), "%v", err)
	}
}

func TestWait_ServerRestarts(t *testing.T) {
	client, namespace := newNamespace(t)
	grant(t, client, namespace, map[string][]any{"crashed": {"list", "watch"}, "stopped": {"list", "watch"}})
	of := resource(t, client, "cm").Namespace(namespace)
	limited := resource(t, connect(t, "limited"), "cm").Namespace(namespace)
	allowed(t, limited, "crashed")
	for name, kill := range map[string]bool{"crashed": true, "stopped": false} {
		_, err := of.Create(t.Context(), configMap(name, map[string]any{"a": "1"}), nil)
		require.NoError(t, err)
		var results []func() (*unstructured.Object, error)
		var watching sync.WaitGroup
		for range 3 {
			for _, user := range []*dynamic.Resource{of, limited} { // a starting server responds to the second with 403 at first
				watching.Add(1)
				isWatching := sync.OnceFunc(watching.Done)
				seen, result := startWait(t, user, name, dynamic.FieldEquals("data.a", "2"), dynamic.Matches("", func(obj *unstructured.Object) (bool, error) {
					if _, isSet, _ := unstructured.Get[string](obj, "data", "b"); isSet {
						isWatching()
					}
					return true, nil
				}))
				<-seen
				results = append(results, result)
			}
		}
		patched(t, of, name, `{"data":{"b":"1"}}`)
		watching.Wait() // a denial before the first watch would be the result
		cluster.RestartAPIServer(t, kill)
		patched(t, of, name, `{"data":{"a":"2"}}`)
		for _, result := range results {
			_, err := result()
			require.NoError(t, err)
		}
	}
}

func TestWait_ServerDownAtStart(t *testing.T) {
	outer := t
	client, namespace := newNamespace(t)
	of := resource(t, client, "cm").Namespace(namespace)
	_, err := of.Create(t.Context(), configMap("one", map[string]any{"a": "1"}), nil)
	require.NoError(t, err)
	var found func() (*unstructured.Object, error)
	t.Run("down", func(t *testing.T) {
		cluster.Stop(t, cluster.APIServer) // until this part ends
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := of.Wait(short, "one", dynamic.Exists())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "its state is unknown")
		require.ErrorContains(t, err, "connection refused")
		_, found = startWait(outer, of, "one", dynamic.FieldEquals("data.a", "1"))
	})
	_, err = found()
	require.NoError(t, err)
}

func TestWait_ExpiredResourceVersion(t *testing.T) {
	client, namespace := newNamespace(t)
	of := resource(t, client, "cm").Namespace(namespace)
	for _, name := range []string{"changed", "deleted"} {
		_, err := of.Create(t.Context(), configMap(name, map[string]any{"a": "1"}), nil)
		require.NoError(t, err)
	}
	compactAndRestart(t, of)
	seen, changed := startWait(t, of, "changed", dynamic.FieldEquals("data.a", "2"))
	<-seen
	patched(t, of, "changed", `{"data":{"a":"2"}}`)
	_, err := changed()
	require.NoError(t, err)

	limit, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := of.Wait(limit, "deleted", dynamic.Deleted())
		done <- err
	}()
	_, err = of.Delete(t.Context(), "deleted", nil)
	require.NoError(t, err)
	require.NoError(t, <-done)
}
