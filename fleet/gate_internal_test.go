package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller/workqueue"
)

// newTestGate returns a gate of clusters that are in the fleet, and have synced, while isMember is true.
func newTestGate(isMember *bool) *gate {
	has := func(string) bool { return *isMember }
	return &gate{
		triggers: []Trigger{{isOwn: true, hasCluster: has, hasSynced: has}}, limit: 1,
		queue: workqueue.New[Key](nil), clusters: map[string]*clusterGate{},
	}
}

func testKey(cluster, name string) Key {
	return Key{cluster, types.NamespacedName{Namespace: "shop", Name: name}}
}

// leftCount returns the number of keys of objects that have left the shard.
func leftCount(g *gate) (count int) {
	for _, c := range g.clusters {
		count += len(c.left)
	}
	return count
}

func TestGate_BoundsKeysOfLeftObjects(t *testing.T) {
	const queued = 1000
	isMember := true
	g := newTestGate(&isMember)
	for i := range queued {
		g.add(testKey("east", fmt.Sprint("queued-", i)), 0, true, false)
		g.add(testKey("east", fmt.Sprint("queued-", i)), 0, true, true)
	}
	for i := range 50 * queued {
		g.add(testKey("east", fmt.Sprint("pod-", i)), 0, true, true)
		require.LessOrEqual(t, leftCount(g), 2*queued)
	}
	for range queued {
		key, ok := g.queue.Get(t.Context())
		require.True(t, ok)
		require.False(t, g.admit(key, 0), "%s is in the queue", key)
		g.queue.Done(key)
	}
	assert.LessOrEqual(t, leftCount(g), 2*minSweep, "the queue is empty")
	g.add(testKey("east", "queued-1"), 0, true, false)
	assert.True(t, g.admit(testKey("east", "queued-1"), 0), "it has returned")
}

func TestGate_ForgetsRemovedClusters(t *testing.T) {
	isMember := true
	g := newTestGate(&isMember)
	delayed := testKey("delayed", "pod")
	g.queue.AddAfter(delayed, time.Hour)
	g.add(delayed, 0, true, true)
	for i := range 100 {
		cluster := fmt.Sprint("cluster-", i)
		require.True(t, g.admit(testKey(cluster, "running"), 0))
		require.False(t, g.admit(testKey(cluster, "parked"), 0))
		g.add(testKey(cluster, "left"), 0, true, true)
	}
	g.forgetRemoved()
	assert.Len(t, g.clusters, 101, "all clusters are in the fleet")
	isMember = false
	g.forgetRemoved()
	for i := range 100 {
		g.release(testKey(fmt.Sprint("cluster-", i), "running"))
	}
	assert.Len(t, g.clusters, 1, "a key of the last cluster is in the queue")
	assert.Zero(t, g.queue.Len(), "nothing is resumed")
	assert.False(t, g.admit(delayed, 0))
}
