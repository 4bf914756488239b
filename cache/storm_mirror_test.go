package cache_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"weak"

	"github.com/anykind/anykind/cache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mirror is a cache and a consumer of its changes.
type mirror struct {
	*witness
	shows   func() map[string]string  // the versions by name that it shows
	holds   func() map[string]*object // the objects by name
	entries func() int                // what it keeps
	alive   func() int                // how many of all the states that it ever had are in memory
}

// mirrorOf has no Transform, so that equal parts of full objects are shared.
func mirrorOf[T any, P cache.Object[T]](
	ctx context.Context, t *testing.T, busy *sync.WaitGroup, source cache.Source[T], whole func(*T) (*object, error),
) *mirror {
	t.Helper()
	all := &everything[T]{}
	c := cache.New[T, P](source, &cache.Options[T]{Indexes: map[string]func(*T) []string{"none": all.note}})
	busy.Go(func() { unchanged(t, c.Run(ctx)) })
	require.NoError(t, c.Sync(ctx))
	w := newWitness(t)
	busy.Go(func() {
		for change := range c.Changes(ctx) {
			if obj := P(change.Object); obj != nil {
				w.hear(change.Type, obj.GetName(), obj.GetUID(), obj.GetResourceVersion())
			}
		}
	})
	shows := func() map[string]string {
		shown := map[string]string{}
		for _, obj := range c.All() {
			shown[P(obj).GetName()] = P(obj).GetResourceVersion()
		}
		return shown
	}
	holds := func() map[string]*object {
		held := map[string]*object{}
		for _, obj := range c.All() {
			full, err := whole(obj)
			assert.NoError(t, err)
			held[P(obj).GetName()] = full
		}
		return held
	}
	return &mirror{witness: w, entries: c.Entries, alive: all.alive, shows: shows, holds: holds}
}

// everything knows every state of an object that went into a cache, without keeping it in memory.
type everything[T any] struct {
	mu  sync.Mutex
	all []weak.Pointer[T]
}

func (s *everything[T]) note(obj *T) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, weak.Make(obj))
	return nil
}

func (s *everything[T]) alive() int {
	runtime.GC()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(each weak.Pointer[T]) bool { return each.Value() == nil })
	return len(s.all)
}
