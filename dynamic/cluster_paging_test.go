package dynamic_test

import (
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAListOutlivesWhatARealServerForgets makes the server forget the list's moment behind its first page, and changes
// what the rest shows.
func TestAListOutlivesWhatARealServerForgets(t *testing.T) {
	client, namespace := cluster(t)
	configMaps := resource(t, client, "cm").In(namespace)
	for name, tc := range map[string]struct {
		choice dynamic.Expiry
		want   []string
		fails  bool
	}{
		"fail":    {dynamic.Fail, []string{"many-000"}, true},
		"go on":   {dynamic.GoOn, []string{"many-000", "many-002", "many-003", "many-100"}, false},
		"restart": {dynamic.Restart, []string{"many-000", "many-000", "many-002", "many-003", "many-100"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fill(t, configMaps, 4)
			forgotten, asked := false, 0
			paged := configMaps.Paging(&dynamic.Paging{
				Page: func(metav1.ListMeta) {
					if forgotten {
						return
					}
					forgotten = true // of one object that was taken, no next page has been asked for
					_, err := configMaps.Delete(t.Context(), "many-001", nil)
					require.NoError(t, err)
					late := configMap("many-100", nil)
					late.SetLabels(map[string]string{"app": "many"})
					_, err = configMaps.Create(t.Context(), late, nil)
					require.NoError(t, err)
					forget(t, configMaps)
				},
				Expired: func(error) dynamic.Expiry { asked++; return tc.choice },
			})
			var got []string
			var last error
			for obj, err := range paged.List(t.Context(), &metav1.ListOptions{LabelSelector: "app=many", Limit: 1}) {
				if last = err; err == nil {
					got = append(got, obj.GetName())
				}
			}
			assert.Equal(t, tc.want, got)
			assert.Equal(t, 1, asked)
			assert.Equal(t, tc.fails, apierrors.IsResourceExpired(last), "%v", last)
			assert.Equal(t, tc.fails, last != nil, "%v", last)
			_, err := configMaps.DeleteCollection(t.Context(), nil, nil)
			require.NoError(t, err)
		})
	}
}

func TestEveryPageOfARealListOfACustomKindArrivesOnceAndInOrder(t *testing.T) {
	client, namespace := cluster(t)
	of := widgets(t, client, namespace)
	var want []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		_, err := of.Create(t.Context(), named(name, nil), nil)
		require.NoError(t, err)
		want = append(want, "Widget "+name)
	}
	for _, limit := range []int64{1, 3, 7} {
		remaining := []int64{}
		got, err := names(t, of.Paging(&dynamic.Paging{Page: func(meta metav1.ListMeta) {
			if meta.RemainingItemCount != nil {
				remaining = append(remaining, *meta.RemainingItemCount)
			}
		}}), &metav1.ListOptions{Limit: limit})
		require.NoError(t, err)
		assert.Equal(t, want, got, "limit %d", limit)
		assert.Equal(t, map[int64][]int64{1: {6, 5, 4, 3, 2, 1}, 3: {4, 1}, 7: {}}[limit], remaining)
	}
}
