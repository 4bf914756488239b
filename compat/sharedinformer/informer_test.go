package sharedinformer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/dynamic"
)

type object = metav1.PartialObjectMetadata

// scriptedStream is one call of Follow: its changes and then an error, or nil for a stream that stays open.
type scriptedStream struct {
	changes []dynamic.Change[object]
	err     error
}

// scriptedSource is a cache.Source with the streams of a test.
type scriptedSource struct{ streams []scriptedStream }

func (s *scriptedSource) Path(string) (string, error) { return "/objects", nil }

// Follow yields the changes of a stream. Known objects that it lacks are deleted before Synced.
func (s *scriptedSource) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[object], error] {
	return func(yield func(dynamic.Change[object], error) bool) {
		current := s.streams[0]
		s.streams = s.streams[1:]
		received := sets.New[string]()
		for _, change := range current.changes {
			if change.Object != nil {
				received.Insert(change.Object.Name)
			}
			for _, name := range opts.KnownObjects.Keys() {
				if change.Type == dynamic.Synced && !received.Has(name) && !yield(missing(name), nil) {
					return
				}
			}
			if !yield(change, nil) {
				return
			}
		}
		err := current.err
		if err == nil {
			<-ctx.Done()
			err = ctx.Err()
		}
		yield(dynamic.Change[object]{}, err)
	}
}

func change(eventType watch.EventType, name, resourceVersion string) dynamic.Change[object] {
	return dynamic.Change[object]{Type: eventType, Object: &object{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion, UID: "uid"},
	}}
}

// missing is the deletion of an object that a list lacks.
func missing(name string) dynamic.Change[object] {
	deleted := change(watch.Deleted, name, "")
	deleted.FinalStateUnknown = true
	return deleted
}

func newInformer(streams ...scriptedStream) *Informer[object, *object] {
	return New[object, *object](&Config[object]{
		Name: "objects", Source: &scriptedSource{streams}, Export: func(obj *object) any { return obj },
		Import: func(obj any) (*object, bool) {
			own, ok := obj.(*object)
			return own, ok
		},
	})
}

// recorder is a handler that records its calls.
type recorder struct {
	mu    sync.Mutex
	calls []string
}

func (r *recorder) record(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func version(obj any) string {
	own := obj.(*object)
	return own.Name + own.ResourceVersion
}

func (r *recorder) OnAdd(obj any, isInitial bool) { r.record("add %s %v", version(obj), isInitial) }
func (r *recorder) OnUpdate(old, obj any)         { r.record("update %s %s", version(old), version(obj)) }
func (r *recorder) OnDelete(obj any) {
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		r.record("delete %s unknown %s", unknown.Key, version(unknown.Obj))
		return
	}
	r.record("delete %s", version(obj))
}

var errRejected = errors.New("rejected")

// TestInformer_FollowsAgainAfterRejection rejects a list after some of its objects, and serves others then.
func TestInformer_FollowsAgainAfterRejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := dynamic.Change[object]{Type: dynamic.Started}
		synced := dynamic.Change[object]{Type: dynamic.Synced}
		informer := newInformer(
			scriptedStream{nil, errRejected},
			scriptedStream{[]dynamic.Change[object]{started, change(watch.Added, "a", "1"), change(watch.Added, "b", "1")}, errRejected},
			scriptedStream{[]dynamic.Change[object]{
				started, change(watch.Added, "b", "2"), synced, change(watch.Added, "c", "3"),
			}, nil},
		)
		handled := &recorder{}
		reported := &recorder{}
		registration, err := informer.AddEventHandler(handled)
		require.NoError(t, err)
		require.NoError(t, informer.SetWatchErrorHandlerWithContext(func(_ context.Context, r *toolscache.Reflector, err error) {
			reported.record("%s %v", r.Name(), err)
		}))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		synctest.Wait()
		assert.Equal(t, []string{"objects rejected"}, reported.all())
		time.Sleep(2 * minSourceBackoff)
		synctest.Wait()
		assert.Equal(t, []string{"objects rejected", "objects rejected"}, reported.all())
		assert.Empty(t, handled.all()) // handlers are called once all initial objects are there
		assert.False(t, informer.HasSynced())
		assert.False(t, registration.HasSynced())
		time.Sleep(4 * minSourceBackoff)
		synctest.Wait()
		assert.Equal(t, []string{"add a1 true", "add b1 true", "update b1 b2", "delete a unknown a1", "add c3 false"}, handled.all())
		assert.True(t, informer.HasSynced())
		assert.True(t, registration.HasSynced())
		assert.ElementsMatch(t, []string{"b", "c"}, informer.GetStore().ListKeys())
		cancel()
		running.Wait()
		assert.True(t, informer.IsStopped())
		assert.Len(t, reported.all(), 2)
	})
}

func TestInformer_NilWatchErrorHandlerIsDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInformer(scriptedStream{err: errRejected}, scriptedStream{changes: []dynamic.Change[object]{{Type: dynamic.Synced}}})
		require.NoError(t, i.SetWatchErrorHandlerWithContext(nil))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { i.RunWithContext(ctx) })
		<-i.Synced()
		cancel()
		running.Wait()
	})
}

func TestInformer_PanicsOfIndexFunctionsReachRun(t *testing.T) {
	informer := newInformer(scriptedStream{[]dynamic.Change[object]{change(watch.Added, "a", "1")}, nil})
	require.NoError(t, informer.AddIndexers(toolscache.Indexers{"failing": func(any) ([]string, error) { return nil, errRejected }}))
	assert.Panics(t, func() { informer.RunWithContext(t.Context()) })
	assert.True(t, informer.IsStopped())
}

// TestResyncRounds_ChooseByPeriod resyncs two objects at each of twelve ticks.
func TestResyncRounds_ChooseByPeriod(t *testing.T) {
	for _, c := range []struct{ period, tick, want int }{
		{0, 1, 0}, {1, 1, 12}, {2, 1, 6}, {3, 1, 4}, {12, 1, 1}, {13, 1, 0}, {7, 3, 6}, {8, 3, 4},
	} {
		t.Run(fmt.Sprintf("every %d of %d", c.period, c.tick), func(t *testing.T) {
			begin := time.Now()
			rounds := resyncRounds{
				period: time.Duration(c.period) * time.Second, tick: time.Duration(c.tick) * time.Second,
				next: begin.Add(time.Duration(c.period) * time.Second),
			}
			got := 0
			for tick := 1; tick <= 12; tick++ {
				now := begin.Add(time.Duration(tick*c.tick) * time.Second)
				first := rounds.includes(now)
				second := rounds.includes(now.Add(10 * time.Millisecond))
				assert.Equal(t, first, second, "tick %d", tick)
				if first {
					got++
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}
