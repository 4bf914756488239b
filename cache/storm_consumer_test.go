package cache_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/testing/workload"
)

// testCache is a cache and a consumer of its changes.
type testCache struct {
	*checkedConsumer
	cachedVersions func() map[string]string  // by name
	cachedObjects  func() map[string]*object // by name
	entries        func() int                // in the cache
	alive          func() int                // object states that are in memory
	health         healthText
}

// healthText prints the health at the time of printing, which is that of a failure.
type healthText func() error

func (h healthText) String() string { return fmt.Sprint(h()) }

// newTestCache runs a cache without a Transform, so that full objects share equal maps and slices.
func newTestCache[T any, P cache.Object[T]](
	ctx context.Context, t *testing.T, busy *sync.WaitGroup, source cache.Source[T], pack func(*T) cache.Packed[T], whole func(*T) (*object, error),
) *testCache {
	t.Helper()
	all := &stateTracker[T]{}
	c := cache.New[T, P](source, &cache.Options[T]{Pack: pack, Indexes: map[string]func(*T) []string{"none": all.note}})
	busy.Go(func() { assertUnchanged(t, c.Run(ctx)) })
	require.NoError(t, c.WaitForSync(ctx))
	w := newCheckedConsumer(t)
	busy.Go(func() {
		for change := range c.Changes(ctx) {
			if obj := P(change.Object); obj != nil {
				w.handle(change.Type, obj.GetName(), obj.GetUID(), obj.GetResourceVersion())
			}
		}
	})
	cachedVersions := func() map[string]string {
		shown := map[string]string{}
		for _, obj := range c.List("", nil) {
			shown[P(obj).GetName()] = P(obj).GetResourceVersion()
		}
		return shown
	}
	cachedObjects := func() map[string]*object {
		held := map[string]*object{}
		for _, obj := range c.List("", nil) {
			full, err := whole(obj)
			assert.NoError(t, err)
			held[P(obj).GetName()] = full
		}
		return held
	}
	return &testCache{checkedConsumer: w, health: c.Health, entries: c.Entries, alive: all.alive, cachedVersions: cachedVersions, cachedObjects: cachedObjects}
}

// stateTracker has weak pointers to every state of an object that was stored in a cache.
type stateTracker[T any] struct {
	mu  sync.Mutex
	all []weak.Pointer[T]
}

func (s *stateTracker[T]) note(obj *T) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, weak.Make(obj))
	return nil
}

func (s *stateTracker[T]) alive() int {
	runtime.GC()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(each weak.Pointer[T]) bool { return each.Value() == nil })
	return len(s.all)
}

// checkedConsumer is a consumer that checks the order of its changes.
type checkedConsumer struct {
	t        *testing.T
	mu       sync.Mutex
	versions map[string]string
	uids     map[string]types.UID
	newest   map[string]string // of each name, deleted or not
	ending   bool              // even what stays all the time is deleted now
}

func newCheckedConsumer(t *testing.T) *checkedConsumer {
	return &checkedConsumer{t: t, versions: map[string]string{}, uids: map[string]types.UID{}, newest: map[string]string{}}
}

func (w *checkedConsumer) handle(kind watch.EventType, name string, uid types.UID, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.uids[name]
	if kind == watch.Added {
		assert.Empty(w.t, known, "%s is added twice", name)
	} else {
		assert.Equal(w.t, known, uid, "%s is %s, but another object", name, kind)
	}
	if kind == watch.Modified {
		assert.NotEqual(w.t, w.versions[name], version, "%s is delivered twice", name)
	}
	assert.False(w.t, older(version, w.newest[name]), "time ran backwards for %s", name)
	w.newest[name] = version
	if kind == watch.Deleted {
		assert.False(w.t, strings.Contains(name, workload.PermanentPart) && !w.ending, "%s exists all the time, but was delivered as Deleted", name)
		delete(w.versions, name)
		delete(w.uids, name)
	} else {
		w.versions[name] = version
		w.uids[name] = uid
	}
}

func (w *checkedConsumer) deliveredVersions() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.versions)
}

// end permits deletions of permanent objects from now on; begin forbids them again and forgets old versions.
func (w *checkedConsumer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
}

func (w *checkedConsumer) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = false
	w.newest = map[string]string{}
}

func older(a, b string) bool {
	first, _ := strconv.ParseUint(a, 10, 64)
	second, _ := strconv.ParseUint(b, 10, 64)
	return first < second
}
