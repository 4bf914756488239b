package cache_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/shard"
)

// twoPods returns a handle on the pods web and db.
func twoPods(t *testing.T) *dynamic.Resource {
	t.Helper()
	server := scripted.New("/v1 pods pod Pod po")
	pod := `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":%q,"uid":%[1]q,"resourceVersion":"1"}}`
	server.Handle("WATCH /api/v1/pods", scripted.Watch(scripted.Event("ADDED", fmt.Sprintf(pod, "web")), scripted.Event("ADDED", fmt.Sprintf(pod, "db")),
		scripted.InitialEventsEnd("v1", "Pod", "10")))
	pods, err := dynamic.New(scripted.Connect(t, server, nil), nil).Resource(t.Context(), "pods")
	require.NoError(t, err)
	return pods.AllNamespaces()
}

func TestRun_ErrRemovedRemovesObjects(t *testing.T) {
	for name, opts := range map[string]*cache.Options[object]{
		"one stream": nil,
		"partitions": {Shard: shard.New(shard.UID, shard.All()...)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := twoPods(t)
				c := cache.New(pods, opts)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				done := make(chan error, 1)
				go func() { done <- c.Run(ctx) }()
				require.NoError(t, c.WaitForSync(t.Context()))
				changes := map[string]int{}
				for change := range c.Changes(t.Context()) { // until the end of Run
					changes[string(change.Type)]++
					if change.Type == dynamic.Synced {
						assert.Len(t, c.List("", nil), 2)
						cancel(cache.ErrRemoved)
					}
				}
				require.ErrorIs(t, <-done, cache.ErrRemoved)
				assert.Equal(t, map[string]int{"ADDED": 2, "SYNCED": 1, "REMOVED": 2}, changes)
				assert.Empty(t, c.List("", nil))
			})
		})
	}
}

// repeatingSource is a source of several handles that obeys KnownObjects.
type repeatingSource struct {
	*dynamic.Resource

	honored bool // the cache has passed KnownObjects
}

func (*repeatingSource) HonorsKnownObjects() {}

func (s *repeatingSource) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[object], error] {
	s.honored = opts.KnownObjects != nil
	return s.Resource.Follow(ctx, opts)
}

func TestSource_HonorsKnownObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := twoPods(t)
		source := &repeatingSource{Resource: pods}
		c := cache.New[object](source, nil)
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()))
		assert.True(t, source.honored)
	})
}
