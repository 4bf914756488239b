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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

type (
	object = unstructured.Object
	change = dynamic.Change[object]
)

// script is a source that emits what a test sends.
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
			case result := <-s.changes:
				next, err := result(opts)
				if next.Type == "" && err == nil {
					continue
				}
				if !yield(next, err) || err != nil {
					return
				}
			}
		}
	}
}

func (s *script) emit(kind watch.EventType, obj *object) {
	s.changes <- func(*dynamic.FollowOptions) (change, error) { return change{Type: kind, Object: obj}, nil }
}

func (s *script) emitUnknownDelete(obj *object) {
	s.changes <- func(*dynamic.FollowOptions) (change, error) {
		return change{Type: watch.Deleted, Object: obj, FinalStateUnknown: true}, nil
	}
}

func (s *script) progress(version string) {
	s.changes <- func(opts *dynamic.FollowOptions) (change, error) {
		opts.OnProgress(version)
		return change{}, nil
	}
}

func (s *script) interrupt(err error) {
	s.changes <- func(opts *dynamic.FollowOptions) (change, error) {
		opts.OnInterruption(dynamic.Interruption{Err: err})
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

// running returns a cache that runs over a script until the test ends.
func running(t *testing.T, opts *cache.Options[object]) (*cache.Cache[object], *script) {
	t.Helper()
	source := newScript()
	c := cache.New(source, opts)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { assertUnchanged(t, c.Run(ctx)) })
	t.Cleanup(func() { cancel(); done.Wait() })
	return c, source
}

// assertUnchanged fails if a cache ended because a reader changed an object.
func assertUnchanged(t *testing.T, err error) {
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

func TestCache_ReadsWithoutRequests(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Indexes: map[string]func(*object) []string{"app": cache.IndexByLabel[object]("app")}})
	source.emit(dynamic.Started, nil)
	source.emit(watch.Added, pod("shop", "web", "web", 1))
	source.emit(watch.Added, pod("shop", "db", "db", 2))
	source.emit(watch.Added, pod("home", "web", "web", 3))
	source.emit(dynamic.Synced, nil)
	require.NoError(t, c.WaitForSync(t.Context()))

	web, found := c.Get("shop", "web")
	require.True(t, found)
	assert.Equal(t, "1", web.GetResourceVersion())
	_, found = c.Get("shop", "none")
	assert.False(t, found)
	assert.Equal(t, []string{"home/web", "shop/db", "shop/web"}, names(c.List("", nil)))
	assert.Equal(t, []string{"shop/db", "shop/web"}, names(c.List("shop", nil)))
	assert.Empty(t, c.List("nowhere", nil))
	selector, err := labels.Parse("app in (web)")
	require.NoError(t, err)
	assert.Equal(t, []string{"home/web", "shop/web"}, names(c.List("", selector)))
	assert.Equal(t, []string{"shop/web"}, names(c.List("shop", selector)))
	byApp, err := c.ByIndex("app", "web")
	require.NoError(t, err)
	assert.Equal(t, []string{"home/web", "shop/web"}, names(byApp))
	_, err = c.ByIndex("team", "a")
	require.EqualError(t, err, `cache /api/v1/pods: unknown index "team" (add it to Options.Indexes)`)
}

func TestCache_IndexesFollowChanges(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Indexes: map[string]func(*object) []string{"app": cache.IndexByLabel[object]("app")}})
	source.emit(watch.Added, pod("shop", "web", "web", 1))
	source.emit(watch.Modified, pod("shop", "web", "api", 2))
	source.emit(watch.Added, pod("shop", "db", "db", 3))
	source.emit(watch.Deleted, pod("shop", "db", "db", 4))
	source.emit(dynamic.Synced, nil)
	require.NoError(t, c.WaitForSync(t.Context()))
	for app, want := range map[string][]string{"web": {}, "api": {"shop/web"}, "db": {}} {
		found, err := c.ByIndex("app", app)
		require.NoError(t, err)
		assert.Equal(t, want, names(found), app)
	}
	assert.Equal(t, []string{"shop/web"}, names(c.List("shop", nil)))
}

func TestWaitForSync_ReturnsErrors(t *testing.T) {
	refused := errors.New("pods is forbidden")
	c, source := running(t, nil)
	source.fail(refused)
	require.ErrorIs(t, c.WaitForSync(t.Context()), refused)
	require.ErrorIs(t, c.WaitForResourceVersion(t.Context(), "5"), refused)

	c, source = running(t, nil)
	source.interrupt(errors.New("connection refused"))
	source.emit(dynamic.Started, nil) // after the interruption was handled
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.WaitForSync(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "cache /api/v1/pods: not synced: context canceled; last interruption: connection refused")
}

func TestCache_RunsOnce(t *testing.T) {
	c, source := running(t, nil)
	source.emit(dynamic.Started, nil)
	require.ErrorContains(t, c.Run(t.Context()), "run a cache: it runs already, or has run")
}

func TestCache_WaitForResourceVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		assert.Empty(t, c.ResourceVersion())
		// The versions of initial objects, which come in no order, do not count.
		source.emit(watch.Added, pod("shop", "web", "web", 12))
		shown := make(chan error, 1)
		go func() { shown <- c.WaitForResourceVersion(t.Context(), "10") }()
		synctest.Wait()
		assert.Empty(t, shown)
		source.progress("9")
		synctest.Wait()
		assert.Empty(t, shown)
		source.progress("11")
		require.NoError(t, <-shown)
		require.NoError(t, c.WaitForResourceVersion(t.Context(), "11"))
		assert.Equal(t, "11", c.ResourceVersion())

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.WaitForResourceVersion(ctx, "12")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "cache /api/v1/pods: resourceVersion 12 not reached: ")
		require.Error(t, c.WaitForResourceVersion(t.Context(), "no number"))
	})
}

func TestTransform_ChangesStoredObjects(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Transform: func(obj *object) *object {
		obj.SetLabels(nil)
		return obj
	}})
	source.emit(watch.Added, pod("shop", "web", "web", 1))
	source.emit(dynamic.Synced, nil)
	require.NoError(t, c.WaitForSync(t.Context()))
	web, _ := c.Get("shop", "web")
	assert.Empty(t, web.GetLabels())
}

func TestTransform_LeavesObjectsOut(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Transform: func(obj *object) *object {
		if obj.GetLabels()["app"] == "secret" {
			return nil
		}
		small := pod("", "small "+obj.GetName(), "", 0)
		small.SetUID(obj.GetUID())
		small.SetResourceVersion(obj.GetResourceVersion())
		return small
	}})
	source.emit(watch.Added, pod("shop", "never", "secret", 1))
	source.emit(watch.Added, pod("shop", "web", "web", 2))
	source.emit(watch.Added, pod("shop", "db", "db", 3))
	source.emit(dynamic.Synced, nil)
	require.NoError(t, c.WaitForSync(t.Context()))
	assert.Equal(t, []string{"/small db", "/small web"}, names(c.List("shop", nil)), "found by what it was")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	next, stop := iter.Pull(c.Changes(ctx))
	defer stop()
	for range 3 {
		next()
	}
	expect := func(want string) {
		t.Helper()
		change, _ := next()
		assert.Equal(t, want, text(change))
	}
	source.emit(watch.Modified, pod("shop", "web", "secret", 4))
	expect("DELETED small web 2 was 2")
	source.emit(watch.Deleted, pod("shop", "web", "secret", 5))
	source.emit(watch.Deleted, pod("shop", "db", "db", 6))
	expect("DELETED small db 6 was 3")
	assert.Empty(t, c.List("", nil))
}

func TestRun_SourceEndsWithoutError(t *testing.T) {
	c := cache.New(silent{newScript()}, nil)
	require.ErrorContains(t, c.Run(t.Context()), "run cache /api/v1/pods: its source ended without an error")
	require.Error(t, c.WaitForSync(t.Context()))
}

func TestRun_ReturnsSourceErrorWithoutMutationDetector(t *testing.T) {
	t.Setenv("ANYKIND_CACHE_MUTATION_DETECTOR", "false") // as in programs; all other tests have it
	c := cache.New(silent{newScript()}, nil)
	require.ErrorContains(t, c.Run(t.Context()), "its source ended without an error")
}

func TestRun_PassesSelectors(t *testing.T) {
	opts := cache.Options[object]{LabelSelector: "app=web", FieldSelector: "status.phase=Running"}
	for name, start := range map[string]func(*testing.T) *script{
		"all namespaces": func(t *testing.T) *script { _, source := running(t, &opts); return source },
		"one of several": func(t *testing.T) *script { _, shop, _ := runningIn(t, opts); return shop },
	} {
		t.Run(name, func(t *testing.T) {
			source := start(t)
			received := make(chan dynamic.FollowOptions, 1)
			source.changes <- func(opts *dynamic.FollowOptions) (change, error) {
				received <- *opts
				return change{}, nil
			}
			passed := <-received
			assert.Equal(t, "app=web", passed.LabelSelector)
			assert.Equal(t, "status.phase=Running", passed.FieldSelector)
		})
	}
}

// silent is a source that ends without an error.
type silent struct{ *script }

func (silent) Follow(context.Context, *dynamic.FollowOptions) iter.Seq2[change, error] {
	return func(func(change, error) bool) {}
}

func TestIndexByOwner_FindsObjects(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Indexes: map[string]func(*object) []string{"owner": cache.IndexByOwner[object]}})
	owned := pod("shop", "web-1", "web", 1)
	owned.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "u1"}, {Kind: "Job", Name: "one", UID: "u2"}})
	source.emit(watch.Added, owned)
	source.emit(watch.Added, pod("shop", "free", "free", 2))
	source.emit(dynamic.Synced, nil)
	require.NoError(t, c.WaitForSync(t.Context()))
	for uid, want := range map[string][]string{"u1": {"shop/web-1"}, "u2": {"shop/web-1"}, "u3": {}} {
		found, err := c.ByIndex("owner", uid)
		require.NoError(t, err)
		assert.Equal(t, want, names(found), uid)
	}
}

func text(c cache.Change[object]) string {
	text := string(c.Type)
	if c.Object != nil {
		text += " " + c.Object.GetName() + " " + c.Object.GetResourceVersion()
	}
	if c.Old != nil {
		text += " was " + c.Old.GetResourceVersion()
	}
	if c.FinalStateUnknown {
		text += " final state unknown"
	}
	return text
}

// collect returns the next changes, of which there are as many as wanted.
func collect(changes iter.Seq[cache.Change[object]], want int) []string {
	var got []string
	for change := range changes {
		if got = append(got, text(change)); len(got) == want {
			break
		}
	}
	return got
}

func TestChanges_InitialObjectsThenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		source.emit(watch.Added, pod("shop", "web", "web", 1))
		source.emit(dynamic.Synced, nil)
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
		source.emit(watch.Modified, pod("shop", "web", "web", 2))
		expect("MODIFIED web 2 was 1")
		source.emit(watch.Deleted, pod("shop", "web", "web", 3))
		expect("DELETED web 3 was 2")
	})
}

// A custom source may emit an object without a name and a namespace.
func TestChanges_ObjectWithoutName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		source.emit(watch.Added, pod("", "", "a", 1))
		source.emit(dynamic.Synced, nil)
		source.emit(watch.Modified, pod("", "", "a", 2))
		synctest.Wait()
		for _, want := range []string{"ADDED  2", "SYNCED"} {
			change, _ := next()
			assert.Equal(t, want, text(change))
		}
		source.emit(dynamic.NotServed, nil)
		source.emit(watch.Deleted, pod("", "", "a", 3))
		synctest.Wait()
		for _, want := range []string{"NOTSERVED", "DELETED  3 was 2"} {
			change, _ := next()
			assert.Equal(t, want, text(change))
		}
	})
}

func TestChanges_SlowConsumerGetsLastStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		source.emit(watch.Added, pod("shop", "a", "a", 1))
		source.emit(watch.Added, pod("shop", "b", "b", 2))
		source.emit(dynamic.Synced, nil)
		synctest.Wait()
		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		for range 3 {
			next()
		}
		for version := 10; version < 1000; version++ {
			source.emit(watch.Modified, pod("shop", "a", "a", version))
		}
		source.emit(watch.Added, pod("shop", "c", "c", 1000))
		source.emit(watch.Deleted, pod("shop", "c", "c", 1001))
		source.emit(watch.Modified, pod("shop", "b", "b", 1002))
		source.emit(watch.Deleted, pod("shop", "b", "b", 1003))
		source.emitUnknownDelete(pod("shop", "a", "a", 999))
		again := pod("shop", "a", "a", 1005)
		again.SetUID("another")
		source.emit(watch.Added, again)
		other := pod("shop", "d", "d", 1006)
		source.emit(watch.Added, other)
		synctest.Wait()
		assert.Equal(t, []string{"shop/a", "shop/d"}, names(c.List("", nil)), "the cache itself has gone on")
		var delivered []string
		for range 4 {
			change, _ := next()
			delivered = append(delivered, text(change))
		}
		assert.Equal(t, []string{"DELETED a 1 was 1 final state unknown", "ADDED a 1005", "DELETED b 1003 was 2", "ADDED d 1006"}, delivered)
	})
}

func TestChanges_PassingObjectsAreNotKept(t *testing.T) {
	c, source := running(t, nil)
	source.emit(dynamic.Synced, nil)
	require.NoError(t, c.WaitForSync(t.Context()))
	next, stop := iter.Pull(c.Changes(t.Context()))
	defer stop()
	next() // it has come for one change, and not for the next
	var objects []weak.Pointer[object]
	for i := range 10 {
		passing := pod("shop", fmt.Sprint("job-", i), "job", i+1)
		objects = append(objects, weak.Make(passing))
		source.emit(watch.Added, passing)
		source.emit(watch.Deleted, passing)
	}
	source.emit(watch.Added, pod("shop", "stays", "web", 100)) // so that all before has been taken in
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

func TestChanges_SyncedOnceWhileSubscribing(t *testing.T) {
	for range 500 {
		c, source := running(t, nil)
		var twice atomic.Int32
		var consumers sync.WaitGroup
		for range 4 {
			consumers.Go(func() {
				times := 0
				assert.NoError(t, c.WaitForSync(t.Context()))
				for range c.Changes(t.Context()) {
					times++
				}
				if times != 1 {
					twice.Add(1)
				}
			})
		}
		source.emit(dynamic.Synced, nil)
		source.fail(errors.New("over"))
		consumers.Wait()
		require.Zero(t, twice.Load())
	}
}

func TestChanges_DeletedSuccessorIsNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, nil)
		source.emit(watch.Added, pod("shop", "a", "a", 1))
		source.emit(dynamic.Synced, nil)
		synctest.Wait()
		next, stop := iter.Pull(c.Changes(t.Context()))
		defer stop()
		next()
		next()
		source.emit(watch.Deleted, pod("shop", "a", "a", 2))
		again := pod("shop", "a", "a", 3)
		again.SetUID("another")
		source.emit(watch.Added, again)
		source.emit(watch.Deleted, again)
		synctest.Wait()
		change, _ := next()
		assert.Equal(t, "DELETED a 1 was 1 final state unknown", text(change))
	})
}

func TestChanges_EndWithContextAndCache(t *testing.T) {
	c, source := running(t, nil)
	source.emit(watch.Added, pod("shop", "a", "a", 1))
	source.emit(dynamic.Synced, nil)
	require.NoError(t, c.WaitForSync(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for change := range c.Changes(ctx) {
		assert.Equal(t, "ADDED a 1", text(change), "nothing follows the end of ctx")
		cancel()
	}
	source.fail(errors.New("over"))
	assert.Equal(t, []string{"ADDED a 1", "SYNCED"}, collect(c.Changes(t.Context()), 100))
}

func TestCache_ResyncDeliversObjectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, source := running(t, &cache.Options[object]{ResyncPeriod: time.Minute})
		source.emit(watch.Added, pod("shop", "a", "a", 1))
		source.emit(dynamic.Synced, nil)
		synctest.Wait()
		assert.Equal(t, []string{"ADDED a 1", "SYNCED", "MODIFIED a 1 was 1", "MODIFIED a 1 was 1"}, collect(c.Changes(t.Context()), 4))
	})
}

func TestCache_ConcurrentReadersAndConsumers(t *testing.T) {
	c, source := running(t, &cache.Options[object]{Indexes: map[string]func(*object) []string{"app": cache.IndexByLabel[object]("app")}})
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
			assert.Equal(t, versionsByName(c.List("", nil)), last, "the last state of each was delivered")
		})
		readers.Go(func() {
			for ctx.Err() == nil {
				c.List("shop", labels.Everything())
				_, _ = c.ByIndex("app", "1")
			}
		})
	}
	for i := range rounds {
		name := fmt.Sprint("pod-", i%7)
		if i%5 == 4 {
			source.emit(watch.Deleted, pod("shop", name, "1", i))
		} else {
			source.emit(watch.Modified, pod("shop", name, strconv.Itoa(i%2), i))
		}
	}
	source.fail(errors.New("over"))
	consumers.Wait()
	cancel()
	readers.Wait()
}

// follows applies a change to a consumer's versions by name, and checks that they do not go back.
func follows(t *testing.T, last map[string]string, change cache.Change[object]) {
	name := change.Object.GetName()
	version := change.Object.GetResourceVersion()
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

// versionsByName returns the objects' versions by name.
func versionsByName(objects []*object) map[string]string {
	all := map[string]string{}
	for _, obj := range objects {
		all[obj.GetName()] = obj.GetResourceVersion()
	}
	return all
}
