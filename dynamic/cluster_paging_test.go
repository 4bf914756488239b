package dynamic_test

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// TestPageOptions_OnExpiredAfterCompaction expires three lists after their first page and changes the remaining
// objects.
func TestPageOptions_OnExpiredAfterCompaction(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	fill(t, configMaps, 4)
	calls := map[dynamic.ExpiryPolicy]int{}
	lists := map[dynamic.ExpiryPolicy]func() (*unstructured.Object, error, bool){}
	for _, choice := range []dynamic.ExpiryPolicy{dynamic.ExpiryFail, dynamic.ExpiryContinue, dynamic.ExpiryRestart} {
		next, stop := iter.Pull2(configMaps.WithPageOptions(&dynamic.PageOptions{OnExpired: func(error) dynamic.ExpiryPolicy {
			calls[choice]++
			return choice
		}}).List(t.Context(), &metav1.ListOptions{LabelSelector: "app=many", Limit: 1}))
		t.Cleanup(stop)
		lists[choice] = next
		first, err, _ := next() // after one object the next page has not been requested
		require.NoError(t, err)
		assert.Equal(t, "many-000", first.GetName())
	}
	_, err := configMaps.Delete(t.Context(), "many-001", nil)
	require.NoError(t, err)
	late := configMap("many-100", nil)
	late.SetLabels(map[string]string{"app": "many"})
	_, err = configMaps.Create(t.Context(), late, nil)
	require.NoError(t, err)
	compactAndRestart(t, configMaps)

	for choice, want := range map[dynamic.ExpiryPolicy][]string{
		dynamic.ExpiryFail:     nil,
		dynamic.ExpiryContinue: {"many-002", "many-003", "many-100"},
		dynamic.ExpiryRestart:  {"many-000", "many-002", "many-003", "many-100"},
	} {
		var got []string
		var last error
		for obj, err, more := lists[choice](); more; obj, err, more = lists[choice]() {
			if last = err; err == nil {
				got = append(got, obj.GetName())
			}
		}
		assert.Equal(t, want, got, "choice %d", choice)
		assert.Equal(t, choice == dynamic.ExpiryFail, last != nil, "choice %d: %v", choice, last)
		assert.Equal(t, choice == dynamic.ExpiryFail, apierrors.IsResourceExpired(last), "choice %d: %v", choice, last)
		assert.Equal(t, 1, calls[choice], "choice %d", choice)
	}
}

func TestList_CustomResourcePagesInOrder(t *testing.T) {
	client, namespace := newNamespace(t)
	of := sharedWidgets(t, client, namespace)
	var want []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		_, err := of.Create(t.Context(), named(name, nil), nil)
		require.NoError(t, err)
		want = append(want, "Widget "+name)
	}
	for _, limit := range []int64{1, 3, 7} {
		remaining := []int64{}
		got, err := names(t, of.WithPageOptions(&dynamic.PageOptions{OnPage: func(meta metav1.ListMeta) {
			if meta.RemainingItemCount != nil {
				remaining = append(remaining, *meta.RemainingItemCount)
			}
		}}), &metav1.ListOptions{Limit: limit})
		require.NoError(t, err)
		assert.Equal(t, want, got, "limit %d", limit)
		assert.Equal(t, map[int64][]int64{1: {6, 5, 4, 3, 2, 1}, 3: {4, 1}, 7: {}}[limit], remaining)
	}
}
