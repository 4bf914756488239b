package cache

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

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
		uids = append(uids, uidIn(selector))
	}
	require.Len(t, uids, 2)
	return m, uids
}

func uidIn(selector shard.Selector) string {
	n := 0
	for !selector.Matches("shop", types.UID(strconv.Itoa(n))) {
		n++
	}
	return strconv.Itoa(n)
}

// knownObjectsSource is an idle source that obeys KnownObjects, as a handle does.
type knownObjectsSource struct{ idle }

func (knownObjectsSource) HonorsKnownObjects() {}

// eventlessMerger merges partitions of a source without events: tests send the events of the newest partition themselves, in a bubble of
// synctest.
type eventlessMerger struct {
	*partitionMerger[partial]

	t   *testing.T
	ctx context.Context //nolint:containedctx // of the test
}

func newEventlessMerger(t *testing.T, source Source[partial], opts *Options[partial]) eventlessMerger {
	t.Helper()
	m := eventlessMerger{&partitionMerger[partial]{cache: New(source, opts), events: make(chan partitionEvent[partial])}, t, nil}
	var cancel context.CancelFunc
	m.ctx, cancel = context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		m.all.Wait()
	})
	require.NoError(t, m.apply(m.ctx, m.cache.takeScope()))
	return m
}

func (m eventlessMerger) setShard(selector shard.Selector) {
	require.NoError(m.t, m.cache.SetShard(selector))
	require.NoError(m.t, m.apply(m.ctx, m.cache.takeScope()))
}

func (m eventlessMerger) newest() *partition[partial] { return m.partitions[len(m.partitions)-1] }

func (m eventlessMerger) send(event partitionEvent[partial]) {
	synctest.Wait() // until the goroutines of the partitions have started
	event.partition = m.newest()
	require.NoError(m.t, m.handle(m.ctx, event))
}

// change sends what a reflector emits for a change of the pod web: no deletion of an unknown key, and a deletion before a new UID.
func (m eventlessMerger) change(kind watch.EventType, uid, version string) {
	send := func(change dynamic.Change[partial]) { m.send(partitionEvent[partial]{change: change}) }
	knownUID, knownVersion, isKnown := m.newest().knownObjects().Version("shop", "web")
	if kind == watch.Deleted && !isKnown {
		return
	}
	if kind != watch.Deleted && isKnown && knownUID != types.UID(uid) {
		send(dynamic.Change[partial]{Type: watch.Deleted, Object: partialPod("web", string(knownUID), knownVersion), FinalStateUnknown: true})
	}
	send(dynamic.Change[partial]{Type: kind, Object: partialPod("web", uid, version)})
}

// sync ends a list, or begins a watch, at a resourceVersion.
func (m eventlessMerger) sync(version string) {
	m.send(partitionEvent[partial]{change: dynamic.Change[partial]{Type: dynamic.Started}})
	m.send(partitionEvent[partial]{version: version})
	m.send(partitionEvent[partial]{change: dynamic.Change[partial]{Type: dynamic.Synced}})
}

func (m eventlessMerger) assertVersion(want string) {
	m.t.Helper()
	obj, found := m.cache.Get("shop", "web")
	if assert.True(m.t, found) {
		assert.Equal(m.t, want, obj.ResourceVersion)
	}
}

// A pod of the first half is replaced by a pod of the second half, which is ahead when both are joined.
func TestSetShard_JoinKeepsReplacedObject(t *testing.T) {
	type event struct {
		kind    watch.EventType
		half    int
		version string
	}
	halves := shard.Split(shard.UID, 2)
	uids := []string{uidIn(halves[0]), uidIn(halves[1])}
	for name, tc := range map[string]struct {
		listed   string // version of the pod in the second list, at 30; "" for none
		replayed []event
		want     string
	}{
		"deleted":             {"25", []event{{watch.Deleted, 0, "24"}, {watch.Added, 1, "25"}}, "25"},
		"changed and deleted": {"25", []event{{watch.Modified, 0, "23"}, {watch.Deleted, 0, "24"}, {watch.Added, 1, "25"}}, "25"},
		"changed later":       {"25", []event{{watch.Deleted, 0, "24"}, {watch.Added, 1, "25"}, {watch.Modified, 1, "31"}}, "31"},
		"replaced later": {"25", []event{
			{watch.Deleted, 0, "24"}, {watch.Added, 1, "25"}, {watch.Deleted, 1, "31"}, {watch.Added, 0, "32"},
		}, "32"},
		"replaced twice": {"28", []event{
			{watch.Deleted, 0, "21"}, {watch.Added, 1, "22"}, {watch.Deleted, 1, "23"},
			{watch.Added, 0, "24"}, {watch.Deleted, 0, "26"}, {watch.Added, 1, "28"},
		}, "28"},
		"not replaced": {"", []event{{watch.Modified, 0, "24"}}, "24"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newEventlessMerger(t, knownObjectsSource{}, &Options[partial]{Shard: halves[0]})
				m.change(watch.Added, uids[0], "5")
				m.sync("10")
				m.setShard(halves[0].Union(halves[1]))
				if tc.listed != "" {
					m.change(watch.Added, uids[1], tc.listed)
				}
				m.sync("30")
				require.Len(t, m.partitions, 1)
				require.Equal(t, "10", m.newest().resourceVersion)
				for _, e := range tc.replayed {
					m.change(e.kind, uids[e.half], e.version)
					m.send(partitionEvent[partial]{version: e.version})
				}
				m.assertVersion(tc.want)
			})
		})
	}
}

// The watch of the first half makes no progress while the second half is gained, lost and gained again.
func TestSetShard_GainedTwiceDoesNotGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		halves := shard.Split(shard.UID, 2)
		uid := uidIn(halves[1])
		m := newEventlessMerger(t, knownObjectsSource{}, &Options[partial]{Shard: halves[0]})
		m.sync("10")
		for _, version := range []string{"20", "30"} {
			m.setShard(halves[0].Union(halves[1]))
			m.change(watch.Added, uid, version)
			m.sync(version)
			require.Len(t, m.partitions, 1, "joined")
			m.sync("10")
			if version == "20" {
				m.setShard(halves[0])
				m.sync("10")
			}
		}
		for _, kind := range []watch.EventType{watch.Modified, watch.Deleted, watch.Added} {
			m.change(kind, uid, "25")
			m.assertVersion("30")
		}
	})
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

// The deletion of the definition is inferred while the joined watch is behind the second half.
func TestSetShard_NotServedDeletesJoinedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		halves := shard.Split(shard.UID, 2)
		m := newEventlessMerger(t, knownObjectsSource{}, &Options[partial]{Shard: halves[0]})
		m.sync("10")
		m.setShard(halves[0].Union(halves[1]))
		m.change(watch.Added, uidIn(halves[1]), "25")
		m.sync("30")
		require.NotEmpty(t, m.newest().seen)
		m.send(partitionEvent[partial]{change: dynamic.Change[partial]{Type: dynamic.NotServed}})
		deleted := dynamic.Change[partial]{Type: watch.Deleted, Object: partialPod("web", uidIn(halves[1]), "25"), FinalStateUnknown: true}
		m.send(partitionEvent[partial]{change: deleted})
		assert.Empty(t, m.cache.List("", nil))
	})
}

// A partition that lists again after a change of the shard has no later writes before the end of the list.
func TestSetShard_WritesAwaitRepeatedList(t *testing.T) {
	halves := shard.Split(shard.UID, 2)
	for name, tc := range map[string]struct {
		source Source[partial]
		audit  *Audit
	}{
		"own source":                  {idle{}, nil},
		"after an audit's difference": {knownObjectsSource{}, &Audit{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newEventlessMerger(t, tc.source, &Options[partial]{Shard: halves[0].Union(halves[1]), Audit: tc.audit})
				m.sync("10")
				if tc.audit != nil {
					m.newest().audit.setDifferences([]Difference{{NamespacedName: web, Stored: ObjectVersion{types.UID(uidIn(halves[0])), "5"}}})
				}
				m.setShard(halves[0])
				m.cache.RecordWrite(written("web", "12"))
				assert.False(t, m.cache.HasWrites(), "nothing has been listed again")
				assert.True(t, m.cache.isListing())
				m.sync("11")
				assert.False(t, m.cache.HasWrites())
				m.send(partitionEvent[partial]{version: "12"})
				assert.True(t, m.cache.HasWrites())
			})
		})
	}
}

// What Transform leaves out is forgotten with the namespace or the shard.
func TestPartitionMerger_LeftOutIsForgotten(t *testing.T) {
	halves := shard.Split(shard.UID, 2)
	leaveOut := func(*partial) *partial { return nil }
	for name, tc := range map[string]struct {
		opts   Options[partial]
		narrow func(c *Cache[partial]) error
		want   int
	}{
		"namespace": {Options[partial]{Namespaces: []string{"home", "shop"}}, func(c *Cache[partial]) error { return c.SetNamespaces("home") }, 0},
		"half":      {Options[partial]{Shard: halves[0].Union(halves[1])}, func(c *Cache[partial]) error { return c.SetShard(halves[0]) }, 1},
		"whole":     {Options[partial]{Shard: halves[0].Union(halves[1])}, func(c *Cache[partial]) error { return c.SetShard(shard.New(shard.UID)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.opts.Audit = &Audit{}
				tc.opts.Transform = leaveOut
				m := newEventlessMerger(t, knownObjectsSource{}, &tc.opts)
				for i, half := range halves {
					pod := partialPod(fmt.Sprint("pod-", i), uidIn(half), "5")
					m.send(partitionEvent[partial]{change: dynamic.Change[partial]{Type: watch.Added, Object: pod}})
				}
				require.Equal(t, 2, m.cache.Entries())
				require.NoError(t, tc.narrow(m.cache))
				require.NoError(t, m.apply(m.ctx, m.cache.takeScope()))
				assert.Equal(t, tc.want, m.cache.Entries())
			})
		})
	}
}
