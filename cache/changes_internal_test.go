package cache

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func liveHeap() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc) //nolint:gosec // far less
}

// TestConsumer_MergesUpdates queues updates of an object, of which the first is delivered before.
func TestConsumer_MergesUpdates(t *testing.T) {
	type partial = metav1.PartialObjectMetadata
	state := func(resourceVersion string) stored[partial] {
		return stored[partial]{object: &partial{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", ResourceVersion: resourceVersion}}}
	}
	first, second, third := state("1"), state("2"), state("3")
	left := update[partial]{object: first, removed: true}
	for name, tc := range map[string]struct {
		updates []update[partial]
		want    []Change[partial]
	}{
		"one update":           {[]update[partial]{{object: second}}, []Change[partial]{{Type: watch.Modified, Object: second.object, Old: first.object}}},
		"two updates":          {[]update[partial]{{object: second}, {object: third}}, []Change[partial]{{Type: watch.Modified, Object: third.object, Old: first.object, Merged: true}}},
		"resync, update":       {[]update[partial]{{object: first}, {object: second}}, []Change[partial]{{Type: watch.Modified, Object: second.object, Old: first.object}}},
		"update, resync":       {[]update[partial]{{object: second}, {object: second}}, []Change[partial]{{Type: watch.Modified, Object: second.object, Old: first.object}}},
		"update, deletion":     {[]update[partial]{{object: second}, {object: third, deleted: true}}, []Change[partial]{{Type: watch.Deleted, Object: third.object, Old: first.object}}},
		"left, returned":       {[]update[partial]{left, {object: second}}, []Change[partial]{{Type: Removed, Object: first.object, Old: first.object}, {Type: watch.Added, Object: second.object}}},
		"left, returned, left": {[]update[partial]{left, {object: second}, left}, []Change[partial]{{Type: Removed, Object: first.object, Old: first.object}}},
	} {
		c := New(noSource{}, nil)
		consumer := newConsumer[partial]()
		for _, u := range tc.updates {
			consumer.queue(types.NamespacedName{Namespace: "shop", Name: "web"}, first, u)
		}
		assert.Equal(t, tc.want, c.changesOf(consumer.next()), name)
	}
}

type noSource struct {
	Source[metav1.PartialObjectMetadata]
}

func (noSource) Path(string) (string, error) { return "/api/v1/pods", nil }

// TestConsumer_FreesMemoryOfTakenChanges takes the changes of an initial list and then those of a few objects.
func TestConsumer_FreesMemoryOfTakenChanges(t *testing.T) {
	const count = 50_000
	var keys []types.NamespacedName
	for i := range count {
		keys = append(keys, types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(i)})
	}
	current := update[metav1.PartialObjectMetadata]{object: stored[metav1.PartialObjectMetadata]{object: &metav1.PartialObjectMetadata{}}}
	consumer := newConsumer[metav1.PartialObjectMetadata]()
	before := liveHeap()
	queueAndTake := func(keys []types.NamespacedName) {
		for _, key := range keys {
			consumer.queue(key, stored[metav1.PartialObjectMetadata]{}, current)
		}
		for range keys {
			require.NotNil(t, consumer.next())
		}
		require.Nil(t, consumer.next())
	}
	queueAndTake(keys)
	assert.Less(t, liveHeap()-before, count, "less than a byte for each")
	queueAndTake(keys[:2])
	few := consumer.pending
	queueAndTake(keys[:2])
	few[keys[0]] = nil
	assert.Contains(t, consumer.pending, keys[0], "a map of few changes is kept")
	runtime.KeepAlive(keys)
}
