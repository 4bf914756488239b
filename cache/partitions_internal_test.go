package cache

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/shard"
)

// newHalves returns a merger of two partitions, and a UID in each of them.
func newHalves(t *testing.T) (m *partitionMerger[partial], uids []string) {
	t.Helper()
	m = &partitionMerger[partial]{cache: newIdle()}
	for _, selector := range shard.Split(shard.UID, 2) {
		m.partitions = append(m.partitions, &partition[partial]{cache: m.cache, shard: selector, hasSynced: true})
		n := 0
		for !selector.Matches("shop", types.UID(strconv.Itoa(n))) {
			n++
		}
		uids = append(uids, strconv.Itoa(n))
	}
	require.Len(t, uids, 2)
	return m, uids
}

func TestPartitionMerger_OldestVersionCounts(t *testing.T) {
	m, _ := newHalves(t)
	m.partitions[0].resourceVersion = "5"
	for _, c := range []struct{ second, want string }{{"9", "5"}, {"3", "3"}, {"", ""}} {
		m.partitions[1].resourceVersion = c.second
		m.updateStream("", false)
		assert.Equal(t, c.want, m.cache.ResourceVersion())
	}
}

// An object was replaced by one of the same name in the other partition, which is ahead.
func TestPartitionMerger_NewerObjectStays(t *testing.T) {
	m, uids := newHalves(t)
	change := func(n int, kind watch.EventType, version string) {
		m.handleChange(m.partitions[n], dynamic.Change[partial]{Type: kind, Object: partialPod("web", uids[n], version)})
	}
	assertVersion := func(want string) {
		t.Helper()
		obj, found := m.cache.Get("shop", "web")
		require.True(t, found)
		assert.Equal(t, want, obj.ResourceVersion)
	}
	change(1, watch.Added, "9")
	change(0, watch.Modified, "7")
	assertVersion("9")
	change(0, watch.Deleted, "8")
	assertVersion("9")
	change(0, watch.Added, "12")
	assertVersion("12")
}
