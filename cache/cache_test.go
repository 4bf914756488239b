package cache_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

type (
	object = unstructured.Object
	change = dynamic.Change[object]
)

// script is a source that tells what a test gives it.
type script struct {
	mu      sync.Mutex
	follows int
	changes chan func(*dynamic.FollowOptions) (change, error)
}

func newScript() *script {
	return &script{changes: make(chan func(*dynamic.FollowOptions) (change, error))}
}

func (s *script) Path(string) (string, error) { return "/api/v1/pods", nil }

func (s *script) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[change, error] {
	s.mu.Lock()
	s.follows++
	s.mu.Unlock()
	return func(yield func(change, error) bool) {
		for {
			select {
			case <-ctx.Done():
				yield(change{}, ctx.Err())
				return
			case next := <-s.changes:
				told, err := next(opts)
				if told.Type == "" && err == nil {
					continue
				}
				if !yield(told, err) || err != nil {
					return
				}
			}
		}
	}
}

func (s *script) tell(kind watch.EventType, obj *object) {
	s.changes <- func(*dynamic.FollowOptions) (change, error) { return change{Type: kind, Object: obj}, nil }
}

func (s *script) unseen(obj *object) {
	s.changes <- func(*dynamic.FollowOptions) (change, error) {
		return change{Type: watch.Deleted, Object: obj, FinalStateUnknown: true}, nil
	}
}

func (s *script) progress(version string) {
	s.changes <- func(opts *dynamic.FollowOptions) (change, error) {
		opts.Progress(version)
		return change{}, nil
	}
}

func (s *script) interrupt(err error) {
	s.changes <- func(opts *dynamic.FollowOptions) (change, error) {
		opts.Interrupted(dynamic.Interruption{Err: err})
		return change{}, nil
	}
}

func (s *script) fail(err error) {
	s.changes <- func(*dynamic.FollowOptions) (change, error) { return change{}, err }
}

// pod is in a namespace, has an app label and a version.
func pod(namespace, name, app string, version int) *object {
	obj := &object{Object: map[string]any{"kind": "Pod"}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetUID(types.UID("uid of " + name))
	obj.SetLabels(map[string]string{"app": app})
	obj.SetResourceVersion(strconv.Itoa(version))
	return obj
}

// running gives a cache that runs over a script until the test ends.
func running(t *testing.T, opts *cache.Options[object]) (*cache.Cache[object], *script) {
	t.Helper()
	source := newScript()
	c := cache.New(source, opts)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { unchanged(t, c.Run(ctx)) })
	t.Cleanup(func() { cancel(); done.Wait() })
	return c, source
}

// unchanged fails if a cache ended since a reader had changed an object.
func unchanged(t *testing.T, err error) {
	t.Helper()
	var found *cache.MutationError
	assert.NotErrorAs(t, err, &found)
}

func names(objects []*object) []string {
	all := []string{}
	for _, obj := range objects {
		all = append(all, obj.GetNamespace()+"/"+obj.GetName())
	}
	slices.Sort(all)
	return all
}

func TestACacheAnswersWithoutARequest(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Indexes: map[string]func(*object) []string{"app": cache.Label[object]("app")}})
	source.tell(dynamic.Started, nil)
	source.tell(watch.Added, pod("shop", "web", "web", 1))
	source.tell(watch.Added, pod("shop", "db", "db", 2))
	source.tell(watch.Added, pod("home", "web", "web", 3))
	source.tell(dynamic.Synced, nil)
	require.NoError(t, c.Sync(t.Context()))

	web, found := c.Get("shop", "web")
	require.True(t, found)
	assert.Equal(t, "1", web.GetResourceVersion())
	_, found = c.Get("shop", "none")
	assert.False(t, found)
	assert.Equal(t, []string{"home/web", "shop/db", "shop/web"}, names(c.All()))
	assert.Equal(t, []string{"shop/db", "shop/web"}, names(c.List("shop", nil)))
	assert.Empty(t, c.List("nowhere", nil))
	selector, err := labels.Parse("app in (web)")
	require.NoError(t, err)
	assert.Equal(t, []string{"home/web", "shop/web"}, names(c.List("", selector)))
	assert.Equal(t, []string{"shop/web"}, names(c.List("shop", selector)))
	byApp, err := c.By("app", "web")
	require.NoError(t, err)
	assert.Equal(t, []string{"home/web", "shop/web"}, names(byApp))
	_, err = c.By("team", "a")
	require.EqualError(t, err, `find objects in the cache of /api/v1/pods: there is no index "team": name it in Options.Indexes`)
}

func TestIndexesFollowWhatChanges(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Indexes: map[string]func(*object) []string{"app": cache.Label[object]("app")}})
	source.tell(watch.Added, pod("shop", "web", "web", 1))
	source.tell(watch.Modified, pod("shop", "web", "api", 2))
	source.tell(watch.Added, pod("shop", "db", "db", 3))
	source.tell(watch.Deleted, pod("shop", "db", "db", 4))
	source.tell(dynamic.Synced, nil)
	require.NoError(t, c.Sync(t.Context()))
	for app, want := range map[string][]string{"web": {}, "api": {"shop/web"}, "db": {}} {
		found, err := c.By("app", app)
		require.NoError(t, err)
		assert.Equal(t, want, names(found), app)
	}
	assert.Equal(t, []string{"shop/web"}, names(c.List("shop", nil)))
}

func TestSyncReturnsWhyTheCacheCannotBeWhole(t *testing.T) {
	refused := errors.New("pods is forbidden")
	c, source := running(t, nil)
	source.fail(refused)
	require.ErrorIs(t, c.Sync(t.Context()), refused)
	require.ErrorIs(t, c.WaitFor(t.Context(), "5"), refused)

	c, source = running(t, nil)
	source.interrupt(errors.New("connection refused"))
	source.tell(dynamic.Started, nil) // so that the interruption has been heard
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Sync(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "cache /api/v1/pods: not synced: context canceled; the last error: connection refused")
}

func TestACacheRunsOnce(t *testing.T) {
	c, source := running(t, nil)
	source.tell(dynamic.Started, nil)
	require.ErrorContains(t, c.Run(t.Context()), "run a cache: it runs already, or has run")
}

func TestWaitForReturnsWhenTheCacheShowsTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		// While what there is comes in, in no order, an object's own version says nothing.
		source.tell(watch.Added, pod("shop", "web", "web", 12))
		shown := make(chan error, 1)
		go func() { shown <- c.WaitFor(t.Context(), "10") }()
		synctest.Wait()
		assert.Empty(t, shown)
		source.progress("9")
		synctest.Wait()
		assert.Empty(t, shown)
		source.progress("11")
		require.NoError(t, <-shown)
		require.NoError(t, c.WaitFor(t.Context(), "11"))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.WaitFor(ctx, "12")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "cache /api/v1/pods: resourceVersion 12 not reached: ")
		require.Error(t, c.WaitFor(t.Context(), "no number"))
	})
}

func TestTransformDropsWhatNobodyReads(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Transform: func(obj *object) *object {
		obj.SetLabels(nil)
		return obj
	}})
	source.tell(watch.Added, pod("shop", "web", "web", 1))
	source.tell(dynamic.Synced, nil)
	require.NoError(t, c.Sync(t.Context()))
	web, _ := c.Get("shop", "web")
	assert.Empty(t, web.GetLabels())
}

func TestTransformIsAskedAboutEveryStateAndMayKeepAnObjectOut(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Transform: func(obj *object) *object {
		if obj.GetLabels()["app"] == "secret" {
			return nil
		}
		small := pod("", "small "+obj.GetName(), "", 0)
		small.SetUID(obj.GetUID())
		small.SetResourceVersion(obj.GetResourceVersion())
		return small
	}})
	source.tell(watch.Added, pod("shop", "never", "secret", 1))
	source.tell(watch.Added, pod("shop", "web", "web", 2))
	source.tell(watch.Added, pod("shop", "db", "db", 3))
	source.tell(dynamic.Synced, nil)
	require.NoError(t, c.Sync(t.Context()))
	assert.Equal(t, []string{"/small db", "/small web"}, names(c.List("shop", nil)), "found by what it was")
	next, stop := iter.Pull(c.Changes(t.Context()))
	defer stop()
	for range 3 {
		next()
	}
	expect := func(want string) {
		t.Helper()
		change, _ := next()
		assert.Equal(t, want, text(change))
	}
	source.tell(watch.Modified, pod("shop", "web", "secret", 4))
	expect("DELETED small web 2 was 2")
	source.tell(watch.Deleted, pod("shop", "web", "secret", 5))
	source.tell(watch.Deleted, pod("shop", "db", "db", 6))
	expect("DELETED small db 6 was 3")
	assert.Empty(t, c.All())
}

func TestASourceThatJustEndsIsAnError(t *testing.T) {
	c := cache.New(silent{newScript()}, nil)
	require.ErrorContains(t, c.Run(t.Context()), "run the cache of /api/v1/pods: its source has ended")
	require.Error(t, c.Sync(t.Context()))
}

// silent is a source that has nothing to tell and does not say why.
type silent struct{ *script }

func (silent) Follow(context.Context, *dynamic.FollowOptions) iter.Seq2[change, error] {
	return func(func(change, error) bool) {}
}

func TestAnIndexFindsObjectsByTheirOwners(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Indexes: map[string]func(*object) []string{"owner": cache.Owner[object]}})
	owned := pod("shop", "web-1", "web", 1)
	owned.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "u1"}, {Kind: "Job", Name: "one", UID: "u2"}})
	source.tell(watch.Added, owned)
	source.tell(watch.Added, pod("shop", "free", "free", 2))
	source.tell(dynamic.Synced, nil)
	require.NoError(t, c.Sync(t.Context()))
	for uid, want := range map[string][]string{"u1": {"shop/web-1"}, "u2": {"shop/web-1"}, "u3": {}} {
		found, err := c.By("owner", uid)
		require.NoError(t, err)
		assert.Equal(t, want, names(found), uid)
	}
}

func TestASetDoesNotShareWhatHasJustEnded(t *testing.T) {
	set := cache.NewSet[object](nil)
	for range 500 {
		source := newScript()
		ended, release, err := set.Use(t.Context(), source)
		require.NoError(t, err)
		source.fail(errors.New("forbidden"))
		require.Error(t, ended.Sync(t.Context()))
		next, releaseNext, err := set.Use(t.Context(), source)
		require.NoError(t, err)
		release()
		releaseNext()
		require.NotSame(t, ended, next)
	}
}

func text(c cache.Change[object]) string {
	told := string(c.Type)
	if c.Object != nil {
		told += " " + c.Object.GetName() + " " + c.Object.GetResourceVersion()
	}
	if c.Old != nil {
		told += " was " + c.Old.GetResourceVersion()
	}
	if c.FinalStateUnknown {
		told += " final state unknown"
	}
	return told
}

// collect takes changes until there are as many as wanted.
func collect(changes iter.Seq[cache.Change[object]], want int) []string {
	var got []string
	for change := range changes {
		if got = append(got, text(change)); len(got) == want {
			break
		}
	}
	return got
}

func TestEachConsumerIsToldWhatThereIsAndThenWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		source.tell(watch.Added, pod("shop", "web", "web", 1))
		source.tell(dynamic.Synced, nil)
		synctest.Wait()
		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		expect := func(want string) {
			t.Helper()
			got, more := next()
			require.True(t, more)
			assert.Equal(t, want, text(got))
		}
		expect("ADDED web 1")
		expect("SYNCED")
		source.tell(watch.Modified, pod("shop", "web", "web", 2))
		expect("MODIFIED web 2 was 1")
		source.tell(watch.Deleted, pod("shop", "web", "web", 3))
		expect("DELETED web 3 was 2")
	})
}

func TestASlowConsumerIsToldTheLastStateOfEachObjectAndHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		source.tell(watch.Added, pod("shop", "a", "a", 1))
		source.tell(watch.Added, pod("shop", "b", "b", 2))
		source.tell(dynamic.Synced, nil)
		synctest.Wait()
		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		for range 3 {
			next()
		}
		for version := 10; version < 1000; version++ {
			source.tell(watch.Modified, pod("shop", "a", "a", version))
		}
		source.tell(watch.Added, pod("shop", "c", "c", 1000))
		source.tell(watch.Deleted, pod("shop", "c", "c", 1001))
		source.tell(watch.Modified, pod("shop", "b", "b", 1002))
		source.tell(watch.Deleted, pod("shop", "b", "b", 1003))
		source.unseen(pod("shop", "a", "a", 999))
		again := pod("shop", "a", "a", 1005)
		again.SetUID("another")
		source.tell(watch.Added, again)
		other := pod("shop", "d", "d", 1006)
		source.tell(watch.Added, other)
		synctest.Wait()
		assert.Equal(t, []string{"shop/a", "shop/d"}, names(c.All()), "the cache itself has gone on")
		var told []string
		for range 4 {
			change, _ := next()
			told = append(told, text(change))
		}
		assert.Equal(t, []string{"DELETED a 1 was 1 final state unknown", "ADDED a 1005", "DELETED b 1003 was 2", "ADDED d 1006"}, told)
	})
}

func TestWhatComesAndGoesIsNotKeptForASlowConsumer(t *testing.T) {
	c, source := running(t, nil)
	source.tell(dynamic.Synced, nil)
	require.NoError(t, c.Sync(t.Context()))
	next, stop := iter.Pull(c.Changes(t.Context()))
	defer stop()
	next() // it has come for one change, and not for the next
	var objects []weak.Pointer[object]
	for i := range 10 {
		passing := pod("shop", fmt.Sprint("job-", i), "job", i+1)
		objects = append(objects, weak.Make(passing))
		source.tell(watch.Added, passing)
		source.tell(watch.Deleted, passing)
	}
	source.tell(watch.Added, pod("shop", "stays", "web", 100)) // so that all before has been taken in
	source.progress("100")
	runtime.GC()
	kept := 0
	for _, each := range objects {
		if each.Value() != nil {
			kept++
		}
	}
	assert.LessOrEqual(t, kept, 1, "of ten objects that are no more")
	change, _ := next()
	assert.Equal(t, "ADDED stays 100", text(change))
}

func TestSyncedIsToldOnceToWhoeverComesAtThatMoment(t *testing.T) {
	for range 500 {
		c, source := running(t, nil)
		var twice atomic.Int32
		var consumers sync.WaitGroup
		for range 4 {
			consumers.Go(func() {
				times := 0
				assert.NoError(t, c.Sync(t.Context()))
				for range c.Changes(t.Context()) {
					times++
				}
				if times != 1 {
					twice.Add(1)
				}
			})
		}
		source.tell(dynamic.Synced, nil)
		source.fail(errors.New("over"))
		consumers.Wait()
		require.Zero(t, twice.Load())
	}
}

func TestASuccessorThatIsGoneAgainIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		source.tell(watch.Added, pod("shop", "a", "a", 1))
		source.tell(dynamic.Synced, nil)
		synctest.Wait()
		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		next()
		next()
		source.tell(watch.Deleted, pod("shop", "a", "a", 2))
		again := pod("shop", "a", "a", 3)
		again.SetUID("another")
		source.tell(watch.Added, again)
		source.tell(watch.Deleted, again)
		synctest.Wait()
		change, _ := next()
		assert.Equal(t, "DELETED a 1 was 1 final state unknown", text(change))
	})
}

func TestChangesEndWithTheirContextAndWithTheCache(t *testing.T) {
	c, source := running(t, nil)
	source.tell(watch.Added, pod("shop", "a", "a", 1))
	source.tell(dynamic.Synced, nil)
	require.NoError(t, c.Sync(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range c.Changes(ctx) {
		cancel()
	}
	source.fail(errors.New("over"))
	assert.Equal(t, []string{"ADDED a 1", "SYNCED"}, collect(c.Changes(t.Context()), 100))
}

func TestAResyncTellsEveryObjectAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, &cache.Options[object]{Resync: time.Minute})
		source.tell(watch.Added, pod("shop", "a", "a", 1))
		source.tell(dynamic.Synced, nil)
		synctest.Wait()
		assert.Equal(t, []string{"ADDED a 1", "SYNCED", "MODIFIED a 1 was 1", "MODIFIED a 1 was 1"}, collect(c.Changes(t.Context()), 4))
	})
}

func TestASetSharesOneStreamFromTheFirstUseToTheLast(t *testing.T) {
	source := newScript()
	set := cache.NewSet[object](nil)
	first, releaseFirst, err := set.Use(t.Context(), source)
	require.NoError(t, err)
	second, releaseSecond, err := set.Use(t.Context(), source)
	require.NoError(t, err)
	assert.Same(t, first, second)
	source.tell(dynamic.Synced, nil)
	require.NoError(t, second.Sync(t.Context()))
	releaseFirst()
	releaseFirst() // once more does nothing
	source.tell(watch.Added, pod("shop", "a", "a", 1))
	releaseSecond()
	require.ErrorIs(t, second.WaitFor(t.Context(), "5"), context.Canceled)

	third, releaseThird, err := set.Use(t.Context(), source)
	require.NoError(t, err)
	assert.NotSame(t, first, third)
	source.fail(errors.New("forbidden"))
	require.Error(t, third.Sync(t.Context()))
	fourth, releaseFourth, err := set.Use(t.Context(), source)
	require.NoError(t, err)
	assert.NotSame(t, third, fourth, "what has ended is not shared")
	releaseThird()
	again, releaseAgain, err := set.Use(t.Context(), source)
	require.NoError(t, err)
	assert.Same(t, fourth, again, "the release of a replaced cache leaves its successor shared")
	releaseAgain()
	releaseFourth()
	assert.Equal(t, 3, source.follows)
}

func TestReadersAndConsumersRunBesideTheWriter(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Indexes: map[string]func(*object) []string{"app": cache.Label[object]("app")}})
	const rounds = 300
	var consumers, readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 3 {
		consumers.Go(func() {
			last := map[string]string{}
			for change := range c.Changes(t.Context()) {
				follows(t, last, change)
			}
			assert.Equal(t, states(c.All()), last, "the last state of each was told")
		})
		readers.Go(func() {
			for ctx.Err() == nil {
				c.List("shop", labels.Everything())
				_, _ = c.By("app", "1")
			}
		})
	}
	for i := range rounds {
		name := fmt.Sprint("pod-", i%7)
		if i%5 == 4 {
			source.tell(watch.Deleted, pod("shop", name, "1", i))
		} else {
			source.tell(watch.Modified, pod("shop", name, strconv.Itoa(i%2), i))
		}
	}
	source.fail(errors.New("over"))
	consumers.Wait()
	cancel()
	readers.Wait()
}

// follows brings a change into what a consumer knows, and checks that time does not run backwards.
func follows(t *testing.T, last map[string]string, change cache.Change[object]) {
	name, version := change.Object.GetName(), change.Object.GetResourceVersion()
	now, err := strconv.Atoi(version)
	assert.NoError(t, err)
	before, _ := strconv.Atoi(last[name])
	assert.GreaterOrEqual(t, now, before)
	if change.Type == watch.Deleted {
		delete(last, name)
	} else {
		last[name] = version
	}
}

// states are the objects' versions by name.
func states(objects []*object) map[string]string {
	all := map[string]string{}
	for _, obj := range objects {
		all[obj.GetName()] = obj.GetResourceVersion()
	}
	return all
}
