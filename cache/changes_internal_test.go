package cache

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func liveHeap() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc) //nolint:gosec // far less
}

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
