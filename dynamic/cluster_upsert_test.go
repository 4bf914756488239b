package dynamic_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func TestUpsert_Results(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	for _, step := range []struct {
		value string
		want  dynamic.UpsertResult
	}{{"1", dynamic.UpsertCreated}, {"1", dynamic.UpsertUnchanged}, {"2", dynamic.UpsertUpdated}} {
		obj, outcome, err := configMaps.Upsert(t.Context(), "settings", func(obj *unstructured.Object) error {
			obj.Object["data"] = map[string]string{"a": step.value}
			return nil
		}, &metav1.UpdateOptions{FieldManager: "test"})
		require.NoError(t, err)
		assert.Equal(t, step.want, outcome)
		assert.Equal(t, step.value, field(t, obj, "data", "a"))
		read, err := configMaps.Get(t.Context(), "settings", nil)
		require.NoError(t, err)
		assert.Equal(t, read, obj)
	}
	_, outcome, err := configMaps.Upsert(t.Context(), "tried", func(*unstructured.Object) error { return nil },
		&metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	assert.Equal(t, dynamic.UpsertCreated, outcome)
	_, err = configMaps.Get(t.Context(), "tried", nil)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// TestUpsert_ConcurrentIncrements lets concurrent writers increment one object, which does not exist at first.
func TestUpsert_ConcurrentIncrements(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	const writers, each = 4, 5
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				assert.NoError(t, dynamic.RetryOnConflict(t.Context(), func(ctx context.Context) error {
					_, _, err := configMaps.Upsert(ctx, "counter", increment, nil)
					return err
				}))
			}
		})
	}
	all.Wait()
	read, err := configMaps.Get(t.Context(), "counter", nil)
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(writers*each), field(t, read, "data", "count"))
}

func increment(obj *unstructured.Object) error {
	count, _, err := unstructured.Get[string](obj, "data", "count")
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(count)
	return unstructured.Set(obj, strconv.Itoa(n+1), "data", "count")
}

func TestUpsert_Status(t *testing.T) {
	client, namespace := newNamespace(t)
	of := sharedWidgets(t, client, namespace)
	_, err := of.Create(t.Context(), named("one", nil), nil)
	require.NoError(t, err)
	for _, want := range []dynamic.UpsertResult{dynamic.UpsertUpdated, dynamic.UpsertUnchanged} {
		obj, outcome, err := of.Subresource("status").Upsert(t.Context(), "one", func(obj *unstructured.Object) error {
			return unstructured.Set(obj, "Ready", "status", "phase")
		}, nil)
		require.NoError(t, err)
		assert.Equal(t, want, outcome)
		assert.Equal(t, "Ready", field(t, obj, "status", "phase"))
	}
}
