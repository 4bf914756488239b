package cache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

type partial = metav1.PartialObjectMetadata

// idle is a source without events: tests apply changes themselves.
type idle struct{}

func (idle) Path(string) (string, error) { return "/api/v1/pods", nil }

func (idle) Namespace(string) Source[partial] { return idle{} }

func (idle) Follow(ctx context.Context, _ *dynamic.FollowOptions) iter.Seq2[dynamic.Change[partial], error] {
	return func(yield func(dynamic.Change[partial], error) bool) {
		<-ctx.Done()
		yield(dynamic.Change[partial]{}, ctx.Err())
	}
}

func newIdle(namespaces ...string) *Cache[partial] {
	return New(Source[partial](idle{}), &Options[partial]{Namespaces: namespaces})
}

// emit applies a change as Run does, and the version after it.
func (c *Cache[T]) emit(kind watch.EventType, obj *T, version string) {
	c.apply(dynamic.Change[T]{Type: kind, Object: obj})
	c.setResourceVersion(c.streamOf(KeyOf(c.metaOf(obj)).Namespace), version)
}

func partialPod(name, uid, version string) *partial {
	return &partial{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

// hasWrites reports whether WaitForWrites returns at once.
func hasWrites(t *testing.T, c *Cache[partial], keys ...types.NamespacedName) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.WaitForWrites(ctx, keys...)
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	return err == nil
}

func written(name, version string) dynamic.Write {
	return dynamic.Write{Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: version}
}

var web, db = types.NamespacedName{Namespace: "shop", Name: "web"}, types.NamespacedName{Namespace: "shop", Name: "db"}

func TestWaitForWrites_Version(t *testing.T) {
	c := newIdle()
	assert.True(t, hasWrites(t, c), "nothing was written")
	c.RecordWrite(written("web", "7"))
	assert.False(t, hasWrites(t, c, web), "before the initial list")
	assert.True(t, hasWrites(t, c, db), "not written")
	c.setResourceVersion("", "6")
	assert.False(t, hasWrites(t, c, web))
	assert.False(t, hasWrites(t, c), "all")
	assert.True(t, hasWrites(t, c, db), "another key")
	c.RecordWrite(written("web", "5"))
	assert.False(t, hasWrites(t, c, web), "the response of an earlier write came later")
	c.emit(watch.Added, partialPod("web", "web", "7"), "7")
	assert.True(t, hasWrites(t, c, web))
	assert.True(t, hasWrites(t, c))
	c.RecordWrite(written("web", "9"))
	assert.False(t, hasWrites(t, c, db, web))
	c.setResourceVersion("", "10")
	assert.True(t, hasWrites(t, c, db, web), "a selector may exclude the object")
}

func TestWaitForWrites_Deletions(t *testing.T) {
	c := newIdle()
	c.RecordWrite(dynamic.Write{Namespace: "shop", Name: "web", UID: "u0"})
	assert.False(t, hasWrites(t, c, web), "the initial list may still have it")
	c.emit(watch.Added, partialPod("web", "u1", "3"), "3")
	c.RecordWrite(dynamic.Write{Namespace: "shop", Name: "web", UID: "u1"})
	assert.False(t, hasWrites(t, c, web))
	c.setResourceVersion("", "100")
	assert.False(t, hasWrites(t, c, web), "no version shows that it is gone")
	c.emit(watch.Deleted, partialPod("web", "u1", "101"), "101")
	assert.True(t, hasWrites(t, c, web))
	c.emit(watch.Added, partialPod("web", "u1", "4"), "102")
	assert.False(t, hasWrites(t, c, web), "a create by another client that comes after the response to the delete")
	c.emit(watch.Added, partialPod("web", "u2", "103"), "103")
	assert.True(t, hasWrites(t, c, web), "another object of the name")

	c.RecordWrite(dynamic.Write{Namespace: "shop", Name: "web"})
	assert.True(t, hasWrites(t, c), "without a UID and a version")

	c.RecordWrite(written("db", "110"))
	c.RecordWrite(dynamic.Write{Namespace: "shop", Name: "db", UID: "db"})
	assert.False(t, hasWrites(t, c, db), "the create must come before the deletion")
	c.emit(watch.Added, partialPod("db", "db", "110"), "110")
	assert.False(t, hasWrites(t, c, db))
	c.emit(watch.Deleted, partialPod("db", "db", "111"), "111")
	assert.True(t, hasWrites(t, c, db))
}

func TestWaitForWrites_EndsAtDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newIdle()
		c.emit(watch.Added, partialPod("web", "u1", "3"), "3")
		c.RecordWrite(dynamic.Write{Namespace: "shop", Name: "web", UID: "u1"})
		result := make(chan error, 1)
		go func() { result <- c.WaitForWrites(t.Context(), web) }()
		synctest.Wait()
		assert.Empty(t, result)
		c.emit(watch.Deleted, partialPod("web", "u1", "5"), "5")
		synctest.Wait()
		assert.Len(t, result, 1)
	})
}

func TestWaitForWrites_StreamOfNamespace(t *testing.T) {
	c := newIdle("shop", "home")
	c.RecordWrite(written("web", "7"))
	c.RecordWrite(dynamic.Write{Namespace: "elsewhere", Name: "web", ResourceVersion: "7"})
	c.setResourceVersion("home", "9")
	assert.False(t, hasWrites(t, c, web))
	c.setResourceVersion("shop", "7")
	assert.True(t, hasWrites(t, c), "a namespace that the cache does not have is ignored")
}

func TestWaitForWrites_NewPartition(t *testing.T) {
	c := newIdle()
	c.setStream("", true, streamState{resourceVersion: "5", synced: true}, false)
	c.setStream("", true, streamState{listing: true, unlisted: true}, false)
	c.RecordWrite(written("web", "7"))
	assert.False(t, hasWrites(t, c, web), "its list may be older than the write")
	c.setStream("", true, streamState{resourceVersion: "7", synced: true}, false)
	assert.True(t, hasWrites(t, c, web))
}

func TestWaitForWrites_RestoredBackup(t *testing.T) {
	c := newIdle()
	c.setResourceVersion("", "1000")
	c.RecordWrite(written("web", "1001"))
	c.setResourceVersion("", "1000")
	assert.False(t, hasWrites(t, c, web))
	c.setResourceVersion("", "20")
	assert.True(t, hasWrites(t, c, web), "its version may never be reached")
}

func TestWaitForWrites_EndsAfterRestoredBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newIdle()
		c.setResourceVersion("", "1000")
		c.RecordWrite(written("web", "1001"))
		result := make(chan error, 1)
		go func() { result <- c.WaitForWrites(t.Context(), web) }()
		synctest.Wait()
		assert.Empty(t, result)
		c.setResourceVersion("", "20")
		require.NoError(t, <-result)
	})
}

func TestWaitForWrites_IncomparableVersionsAreIgnored(t *testing.T) {
	c := newIdle()
	c.setResourceVersion("", "1")
	c.RecordWrite(written("web", "opaque"))
	assert.True(t, hasWrites(t, c, web))
	c.RecordWrite(written("web", "2"))
	c.RecordWrite(written("web", "opaque"))
	assert.False(t, hasWrites(t, c, web), "the version before")
	c.setResourceVersion("", "opaque")
	assert.True(t, hasWrites(t, c, web))
}

func TestWaitForWrites_ListsWithoutVersion(t *testing.T) {
	c := newIdle()
	c.RecordWrite(written("web", "5"))
	c.setResourceVersion("", "")
	assert.False(t, hasWrites(t, c, web), "before the initial list")
	c.setServed(dynamic.Synced)
	assert.True(t, hasWrites(t, c, web), "nothing can be said")
	c.emit(watch.Added, partialPod("db", "u", "5"), "")
	c.RecordWrite(dynamic.Write{Namespace: "shop", Name: "db", UID: "u"})
	assert.False(t, hasWrites(t, c, db))
}

func TestWaitForWrites_GivesUp(t *testing.T) {
	forbidden := errors.New("pods is forbidden")
	for name, tc := range map[string]struct {
		during func(c *Cache[partial])
		after  time.Duration
		want   string
	}{
		"never received": {func(*Cache[partial]) {}, 2 * time.Minute, "the write of shop/web not received within 2m0s"},
		"interrupted for long": {func(c *Cache[partial]) {
			for range 3 {
				c.handleInterruption("shop", dynamic.Interruption{Err: forbidden})
				time.Sleep(5 * time.Second)
			}
		}, 10 * time.Second, "the write of shop/web not received: pods is forbidden"},
		"interrupted once": {func(c *Cache[partial]) { c.handleInterruption("shop", dynamic.Interruption{Err: forbidden}) },
			10 * time.Second, "the write of shop/web not received: pods is forbidden"},
		"interrupted now and then": {func(c *Cache[partial]) {
			for range 30 {
				c.handleInterruption("shop", dynamic.Interruption{Err: forbidden})
				time.Sleep(9 * time.Second)
				c.setResourceVersion("shop", "1")
			}
		}, 2 * time.Minute, "the write of shop/web not received within 2m0s"},
		"another stream is interrupted": {func(c *Cache[partial]) {
			for range 30 {
				c.handleInterruption("home", dynamic.Interruption{Err: forbidden})
				time.Sleep(5 * time.Second)
			}
		}, 2 * time.Minute, "the write of shop/web not received within 2m0s"},
		"rejected": {func(c *Cache[partial]) {
			c.setStream("shop", true, streamState{resourceVersion: "1", rejected: forbidden}, false)
		}, 0, "the write of shop/web not received: pods is forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newIdle("shop", "home")
				c.setResourceVersion("shop", "1")
				c.setResourceVersion("home", "1")
				c.RecordWrite(written("web", "5"))
				start := time.Now()
				var during sync.WaitGroup
				during.Go(func() { tc.during(c) })
				err := c.WaitForWrites(t.Context())
				assert.EqualError(t, err, "cache /api/v1/pods: "+tc.want)
				assert.Equal(t, tc.after, time.Since(start))
				assert.True(t, c.HasWrites(web), "forgotten")
				assert.NoError(t, c.WaitForWrites(t.Context(), web))
				c.RecordWrite(written("web", "6"))
				assert.False(t, c.HasWrites(web))
				during.Wait()
			})
		})
	}
}

// TestWaitForWrites_GivesUpRefreshedWrites waits for a write that never arrives, while others write to the same object.
func TestWaitForWrites_GivesUpRefreshedWrites(t *testing.T) {
	deletion := dynamic.Write{Namespace: "shop", Name: "web", UID: "u1"}
	for name, tc := range map[string]struct {
		first     dynamic.Write
		refresh   func(c *Cache[partial], n int) // each half minute
		hasWrites bool                           // once the first write is given up
	}{
		"a deletion, repeated": {deletion, func(c *Cache[partial], _ int) { c.RecordWrite(deletion) }, true},
		"a deletion, and versions that arrive": {deletion, func(c *Cache[partial], n int) {
			version := strconv.Itoa(100 + n)
			c.RecordWrite(written("web", version))
			c.emit(watch.Modified, partialPod("web", "u1", version), version)
		}, true},
		"a version, repeated": {written("web", "50"), func(c *Cache[partial], _ int) { c.RecordWrite(written("web", "50")) }, true},
		"a version, and newer ones": {written("web", "50"), func(c *Cache[partial], n int) {
			c.RecordWrite(written("web", strconv.Itoa(50+n)))
		}, false},
		"a version, and a deletion": {written("web", "50"), func(c *Cache[partial], _ int) { c.RecordWrite(deletion) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newIdle()
				c.emit(watch.Added, partialPod("web", "u1", "1"), "1")
				c.RecordWrite(tc.first)
				start := time.Now()
				result := make(chan error, 1)
				go func() { result <- c.WaitForWrites(t.Context(), web) }()
				for n := range 3 {
					time.Sleep(30 * time.Second)
					tc.refresh(c, n+1)
				}
				require.EqualError(t, <-result, "cache /api/v1/pods: the write of shop/web not received within 2m0s")
				assert.Equal(t, 2*time.Minute, time.Since(start))
				assert.Equal(t, tc.hasWrites, c.HasWrites(web))
				_ = c.WaitForWrites(t.Context(), web)
				assert.LessOrEqual(t, time.Since(start), 4*time.Minute)
				assert.True(t, c.HasWrites(web))
			})
		})
	}
}

// lockingSource is a source whose Path takes the lock of its cache, as a method of the caller may.
type lockingSource struct {
	idle
	t     *testing.T
	cache *Cache[partial]
}

func (l *lockingSource) Path(name string) (string, error) {
	if l.cache != nil {
		if assert.True(l.t, l.cache.mu.TryLock(), "a function of the caller runs under the lock") {
			l.cache.mu.Unlock()
		}
	}
	return l.idle.Path(name)
}

func TestWaitForWrites_CallsNoSourceUnderLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &lockingSource{t: t}
		c := New(Source[partial](source), nil)
		source.cache = c
		c.setResourceVersion("", "1")
		c.RecordWrite(written("web", "5"))
		require.ErrorContains(t, c.WaitForWrites(t.Context()), "within 2m0s")
		c.RecordWrite(written("web", "5"))
		c.setStream("", true, streamState{resourceVersion: "1", rejected: errors.New("pods is forbidden")}, false)
		require.ErrorContains(t, c.WaitForWrites(t.Context()), "pods is forbidden")
	})
}

func TestTrackWrites_DeleteWithoutUID(t *testing.T) {
	server := scripted.New("")
	server.Handle("", scripted.JSON(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	client := dynamic.New(scripted.Connect(t, server, &transport.Options{Namespace: "home"}), nil)
	defer client.Close()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "things"}
	for name, tc := range map[string]struct {
		things *dynamic.Resource
		key    types.NamespacedName
	}{
		"in a chosen namespace": {client.ForGVR(gvr).Namespace("shop"), types.NamespacedName{Namespace: "shop", Name: "web"}},
		"namespaced":            {client.ForAPIResource(&discovery.Resource{GVR: gvr, Namespaced: true}), types.NamespacedName{Namespace: "home", Name: "web"}},
		"cluster-scoped":        {client.ForAPIResource(&discovery.Resource{GVR: gvr}), types.NamespacedName{Namespace: "", Name: "web"}},
		"of unknown scope":      {client.ForGVR(gvr), types.NamespacedName{Namespace: "", Name: "web"}},
	} {
		t.Run(name, func(t *testing.T) { checkDeleteWithoutUID(t, tc.things, tc.key) })
	}
}

func checkDeleteWithoutUID(t *testing.T, things *dynamic.Resource, key types.NamespacedName) {
	t.Helper()
	c := newIdle()
	emit := func(kind watch.EventType, uid, version string) {
		obj := partialPod(key.Name, uid, version)
		obj.Namespace = key.Namespace
		c.emit(kind, obj, version)
	}
	emit(watch.Added, "u1", "10")
	replaced := things.OnWrite(func(context.Context, string, string) func(dynamic.Write) {
		return func(dynamic.Write) { // before the cache records the write
			emit(watch.Deleted, "u1", "11")
			emit(watch.Added, "u2", "12")
		}
	})
	_, err := c.TrackWrites(replaced).Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.True(t, c.HasWrites(key), "the recreated object is not the deleted one")
	_, err = c.TrackWrites(things).Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.False(t, c.HasWrites(key))
	emit(watch.Deleted, "u2", "13")
	assert.True(t, c.HasWrites(key))
	_, err = c.TrackWrites(things).Delete(t.Context(), "web", nil)
	require.NoError(t, err)
	assert.True(t, c.HasWrites(key), "nothing to wait for")
}

func TestWaitForWrites_WaitsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newIdle()
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = c.Run(ctx) })
		c.setResourceVersion("", "1")
		c.RecordWrite(written("web", "5"))
		c.RecordWrite(written("db", "6"))
		results := make(chan error, 3)
		go func() { results <- c.WaitForWrites(t.Context(), web) }()
		go func() { results <- c.WaitForWrites(t.Context()) }()
		synctest.Wait()
		assert.Empty(t, results)
		c.RecordWrite(written("web", "100")) // after the calls
		c.setResourceVersion("", "5")
		synctest.Wait()
		require.Len(t, results, 1)
		require.NoError(t, <-results)
		c.setResourceVersion("", "6")
		require.NoError(t, <-results)

		limited, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		err := c.WaitForWrites(limited, web)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "cache /api/v1/pods: the write of shop/web not received: ")
		go func() { results <- c.WaitForWrites(t.Context(), web) }()
		synctest.Wait()
		cancel()
		assert.ErrorContains(t, <-results, "cache /api/v1/pods: the write of shop/web not received: stopped: context canceled")
		requireNoWaiters(t, c)
		done.Wait()
	})
}

func TestTrackWrites_MemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newIdle()
		c.setResourceVersion("", "1")
		for i := range 10 * minSweep {
			c.RecordWrite(written(fmt.Sprint("received-", i), "1"))
			require.LessOrEqual(t, len(c.writes.byKey), minSweep, "what the cache has is removed")
		}
		const perSecond = 50
		for i := range 20 * minSweep {
			name := fmt.Sprint("missing-", i)
			c.RecordWrite(written(name, strconv.Itoa(2+i)))
			require.LessOrEqual(t, len(c.writes.byKey), 2*perSecond*int(maxWriteAge/time.Second)+1, "what is given up is removed")
			time.Sleep(time.Second / perSecond)
			require.False(t, c.HasWrites(types.NamespacedName{Namespace: "shop", Name: name}))
		}
	})
}

// TestCache_ReadersDoNotStarveWriter lists without pause in more goroutines than there are processors while objects change.
func TestCache_ReadersDoNotStarveWriter(t *testing.T) {
	const objects, changes, readers = 2000, 500, 16
	c := newIdle()
	for i := range objects {
		c.emit(watch.Added, partialPod(fmt.Sprint("pod-", i), fmt.Sprint(i), "1"), "1")
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			for !isClosed(stop) {
				c.List("", nil)
				c.List("shop", nil)
				c.Get("shop", "pod-1")
				_ = c.HasSynced()
				_ = c.Health()
			}
		})
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range changes {
			version := strconv.Itoa(i + 2)
			c.emit(watch.Modified, partialPod("pod-1", "1", version), version)
		}
	}()
	select {
	case <-written:
	case <-time.After(time.Minute):
		t.Error("the writer waits for readers")
	}
	close(stop)
	reading.Wait()
	<-written
	pod, _ := c.Get("shop", "pod-1")
	assert.Equal(t, strconv.Itoa(changes+1), pod.ResourceVersion)
}
