package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// TestChangeTracker_DeletedNotOlderThanHandled has a handler that got a newer state from the cache than the changes had delivered when
// the object was replaced.
func TestChangeTracker_DeletedNotOlderThanHandled(t *testing.T) {
	key := types.NamespacedName{Name: "a"}
	state := func(version string) *unstructured.Object {
		return &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": "a", "uid": "1", "resourceVersion": version}}}
	}
	for delivered, want := range map[string]string{"5": "7", "7": "7", "9": "9"} {
		var changes []cache.Change[unstructured.Object]
		tracker := &changeTracker{
			handler: func(_ context.Context, change cache.Change[unstructured.Object]) error {
				changes = append(changes, change)
				return nil
			},
			objects: cache.New[unstructured.Object]((*dynamic.Resource)(nil), nil),
			handled: map[types.NamespacedName]handledObject{key: {state("7"), true}},
			deleted: map[types.NamespacedName]cache.Change[unstructured.Object]{key: {Type: watch.Deleted, Object: state(delivered), FinalStateUnknown: true}},
		}
		require.NoError(t, tracker.reconcile(t.Context(), key))
		require.Len(t, changes, 1)
		assert.Equal(t, want, changes[0].Object.GetResourceVersion(), "delivered: %s", delivered)
		assert.Equal(t, "7", changes[0].Old.GetResourceVersion())
		assert.True(t, changes[0].FinalStateUnknown)
	}
}
