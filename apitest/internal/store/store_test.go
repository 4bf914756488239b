package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest/internal/store"
)

func key(name string) store.Key {
	return store.Key{Group: "apps", Resource: "deployments", Namespace: "shop", Name: name}
}

func named(k store.Key, value any) store.Object {
	return store.Object{"metadata": map[string]any{"namespace": k.Namespace, "name": k.Name}, "spec": value}
}

func object(value any) store.Object { return store.Object{"metadata": map[string]any{}, "spec": value} }

func TestStore_WritesAndTheirErrors(t *testing.T) {
	s := store.New(store.DefaultLimit)
	first, err := s.Create(key("web"), object("a"))
	require.NoError(t, err)
	assert.Equal(t, "2", store.Version(first))
	_, err = s.Create(key("web"), object("a"))
	require.ErrorIs(t, err, store.ErrExists)

	same, err := s.Update(key("web"), "2", object("a"))
	require.NoError(t, err)
	assert.Equal(t, "2", store.Version(same), "no difference, no write")
	second, err := s.Update(key("web"), "2", object("b"))
	require.NoError(t, err)
	assert.Equal(t, "3", store.Version(second))
	_, err = s.Update(key("web"), "2", object("c"))
	require.ErrorIs(t, err, store.ErrConflict)
	_, err = s.Update(key("db"), "", object("c"))
	require.ErrorIs(t, err, store.ErrNotFound)

	_, err = s.Delete(key("web"), "2", nil)
	require.ErrorIs(t, err, store.ErrConflict)
	last, err := s.Delete(key("web"), "3", nil)
	require.NoError(t, err)
	assert.Equal(t, "4", store.Version(last))
	_, found := s.Get(key("web"))
	assert.False(t, found)
	assert.Equal(t, "3", store.Version(second), "states are immutable")
	assert.Len(t, s.History(key("web")), 3)
}

// model is every state of every revision, without compaction.
type model struct {
	objects map[int64]map[string]any // revision → path → value
	events  []store.Event
}

func TestStore_ListsAndWatchesAgreeWithModel(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { playRandomWrites(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func playRandomWrites(t *testing.T, random *rand.Rand) {
	const limit = 60
	s := store.New(limit)
	m := model{objects: map[int64]map[string]any{1: {}}}
	current := map[string]any{}
	for step := range 300 {
		k := store.Key{Resource: "pods", Namespace: string(rune('a' + random.IntN(3))), Name: strconv.Itoa(random.IntN(8))}
		if random.IntN(10) == 0 {
			_, _ = s.Create(store.Key{Resource: "nodes", Name: strconv.Itoa(step)}, object(step)) // another resource's revisions
		}
		kind := watch.Deleted
		switch random.IntN(3) {
		case 0:
			kind = watch.Added
			_, _ = s.Create(k, named(k, step))
		case 1:
			kind = watch.Modified
			_, _ = s.Update(k, "", named(k, step))
		default:
			_, _ = s.Delete(k, "", nil)
		}
		m.record(s, k, kind, current, step)
		if random.IntN(40) == 0 {
			s.Compact(s.Compacted() + random.Int64N(s.Revision()-s.Compacted()+1))
		}
	}
	m.check(t, s)
}

func (m *model) record(s *store.Store, k store.Key, kind watch.EventType, current map[string]any, step int) {
	path := k.Namespace + "/" + k.Name
	_, exists := current[path]
	if exists == (kind != watch.Added) {
		if kind == watch.Deleted {
			delete(current, path)
		} else {
			current[path] = step
		}
		m.events = append(m.events, store.Event{Type: kind, Key: k, Revision: s.Revision()})
	}
	m.objects[s.Revision()] = maps.Clone(current)
}

func (m *model) check(t *testing.T, s *store.Store) {
	t.Helper()
	for revision, state := range m.objects {
		for _, namespace := range []string{"", "b"} {
			objects, at, err := s.List("", "pods", namespace, revision)
			if revision < s.Compacted() {
				require.ErrorIs(t, err, store.ErrCompacted)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, revision, at)
			var want, got []any
			for _, path := range slices.Sorted(maps.Keys(state)) {
				if namespace == "" || path[:1] == namespace {
					want = append(want, state[path])
				}
			}
			for _, obj := range objects {
				got = append(got, obj["spec"])
			}
			require.Equal(t, want, got, "revision %d", revision)
			m.checkPages(t, s, namespace, revision, objects)
		}
		m.checkWatch(t, s, revision)
	}
	_, _, err := s.List("", "pods", "", s.Revision()+1)
	require.ErrorIs(t, err, store.ErrFuture)
}

// checkPages compares pages of all sizes with a list.
func (m *model) checkPages(t *testing.T, s *store.Store, namespace string, revision int64, list []store.Object) {
	t.Helper()
	for limit := 1; limit <= len(list); limit += 3 {
		q := store.Query{Resource: "pods", Namespace: namespace, Revision: revision, Limit: limit, Count: true}
		var paged []store.Object
		for more := true; more; {
			page, err := s.Page(q)
			require.NoError(t, err)
			paged = append(paged, page.Objects()...)
			require.Equal(t, len(list)-len(paged), page.Remaining)
			require.Equal(t, len(paged) < len(list), page.More)
			more = page.More
			q.Start = keyOf(page.Object(page.Len()-1), namespace) + "\x00"
		}
		require.Equal(t, list, paged)
	}
}

func keyOf(obj store.Object, namespace string) string {
	metadata, _ := obj["metadata"].(map[string]any)
	name := fmt.Sprint(metadata["name"])
	if namespace == "" {
		name = fmt.Sprint(metadata["namespace"], "/", name)
	}
	return name
}

func (m *model) checkWatch(t *testing.T, s *store.Store, from int64) {
	t.Helper()
	w, err := s.Watch("", "pods", "", from)
	if from < s.Compacted() {
		require.ErrorIs(t, err, store.ErrCompacted)
		return
	}
	require.NoError(t, err)
	var want, got []string
	for _, event := range m.events {
		if event.Revision > from {
			want = append(want, fmt.Sprint(event.Type, event.Key, event.Revision))
		}
	}
	for {
		events, revision, more, err := w.Next(7)
		require.NoError(t, err)
		for _, event := range events {
			require.Equal(t, strconv.FormatInt(event.Revision, 10), store.Version(event.Object))
			require.Equal(t, event.Type == watch.Added, event.Previous == nil)
			got = append(got, fmt.Sprint(event.Type, event.Key, event.Revision))
		}
		select {
		case <-more:
			continue
		default:
		}
		require.Equal(t, s.Revision(), revision)
		break
	}
	require.Equal(t, want, got)
}

func TestStore_RetainsLimitedEvents(t *testing.T) {
	s := store.New(10)
	for i := range 100 {
		_, err := s.Create(key(strconv.Itoa(i)), object(i))
		require.NoError(t, err)
		if i%2 == 0 {
			_, err = s.Delete(key(strconv.Itoa(i)), "", nil)
			require.NoError(t, err)
		}
	}
	assert.Equal(t, s.Revision()-10, s.Compacted())
	objects, _, err := s.List("apps", "deployments", "shop", 0)
	require.NoError(t, err)
	assert.Len(t, objects, 50)
	assert.Equal(t, 50, s.Len("apps", "deployments"))
	_, _, err = s.List("apps", "deployments", "shop", s.Compacted()-1)
	require.ErrorIs(t, err, store.ErrCompacted)
}

func TestWatch_SurvivesCompactionUntilItLags(t *testing.T) {
	s := store.New(10)
	w, err := s.Watch("apps", "deployments", "", 0)
	require.NoError(t, err)
	write := func(n int) {
		for range n {
			_, err := s.Create(key(strconv.FormatInt(s.Revision(), 10)), object(nil))
			require.NoError(t, err)
		}
	}
	write(10)
	s.Compact(s.Revision())
	events, revision, _, err := w.Next(100)
	require.NoError(t, err)
	assert.Len(t, events, 10)
	assert.Equal(t, s.Revision(), revision)
	write(11)
	_, _, _, err = w.Next(100)
	require.ErrorIs(t, err, store.ErrCompacted)
}

func TestStore_ConcurrentWritersAndWatches(t *testing.T) {
	s := store.New(store.DefaultLimit)
	const writers, writes = 4, 200
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range writes {
				_, err := s.Create(store.Key{Resource: "pods", Namespace: strconv.Itoa(w), Name: strconv.Itoa(i)}, object(i))
				assert.NoError(t, err)
			}
		})
		group.Go(func() {
			watcher, err := s.Watch("", "pods", strconv.Itoa(w), 1)
			if !assert.NoError(t, err) {
				return
			}
			for n := 0; n < writes; {
				events, _, more, err := watcher.Next(10)
				if !assert.NoError(t, err) {
					return
				}
				for _, event := range events {
					assert.Equal(t, strconv.Itoa(n), event.Key.Name)
					n++
				}
				if n < writes {
					<-more
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkStore_Pages reads 50,000 objects in 100 pages.
func BenchmarkStore_Pages(b *testing.B) {
	s := store.New(store.DefaultLimit)
	const all = 50_000
	for i := range all {
		_, err := s.Create(key(fmt.Sprintf("%05d", i)), object(i))
		require.NoError(b, err)
	}
	for _, namespace := range []string{"", "shop"} {
		b.Run("namespace "+namespace, func(b *testing.B) {
			for b.Loop() {
				n := 0
				q := store.Query{Group: "apps", Resource: "deployments", Namespace: namespace, Limit: all / 100, Count: true}
				for more := true; more; {
					page, err := s.Page(q)
					require.NoError(b, err)
					n += page.Len()
					more = page.More
					require.Equal(b, all-n, page.Remaining)
					metadata := page.Object(page.Len() - 1)["spec"]
					q.Start = fmt.Sprintf("%05d\x00", metadata)
					if namespace == "" {
						q.Start = "shop/" + q.Start
					}
				}
			}
		})
	}
}
