//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dynamic"
)

// mixed fills a cache of full objects for each resource and receives a change of each object.
func (s *side) mixed(ctx context.Context, m *measure.Meter) error {
	return mixing(ctx, s, m, newFull)
}

// mixedLazy is mixed for lazy objects.
func (s *side) mixedLazy(ctx context.Context, m *measure.Meter) error {
	return mixing(ctx, s, m, newLazy)
}

// mixedPacked is mixed for packed lazy objects.
func (s *side) mixedPacked(ctx context.Context, m *measure.Meter) error {
	return mixing(ctx, s, m, newPacked)
}

// mixing fills a cache for each resource, then receives a change of each object.
func mixing[T any, P metaObject[T]](ctx context.Context, s *side, m *measure.Meter, newCache func(*dynamic.Resource) *cache.Cache[T]) error {
	resources, err := m.ParseResources()
	if err != nil {
		return err
	}
	caches := make([]*cache.Cache[T], len(resources))
	for i, gvr := range resources {
		caches[i] = newCache(s.client.ForGVR(gvr).Namespace(m.Namespace))
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	for _, c := range caches {
		running.Go(func() { _ = c.Run(ctx) }) // WaitForSync returns the error, too
	}
	err = m.Stage("sync", func() error {
		for _, c := range caches {
			if err := c.WaitForSync(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.Held()
	objects := 0
	for _, c := range caches {
		objects += len(c.List("", nil))
	}
	if objects != m.Count {
		return fmt.Errorf("%d objects in the caches, want %d", objects, m.Count)
	}
	return consuming[T, P](ctx, m, caches, &running)
}

// consuming receives a change of each object, with a consumer for each cache.
func consuming[T any, P metaObject[T]](ctx context.Context, m *measure.Meter, caches []*cache.Cache[T], running *sync.WaitGroup) error {
	var synced sync.WaitGroup
	synced.Add(len(caches))
	var mu sync.Mutex // of the meter
	done := make(chan struct{})
	closeDone := sync.OnceFunc(func() { close(done) }) // an object may change again
	for _, c := range caches {
		running.Go(func() {
			for change := range c.Changes(ctx) {
				switch change.Type {
				case dynamic.Synced:
					synced.Done()
				case watch.Modified:
					obj := P(change.Object)
					mu.Lock()
					m.SeeChange(obj.GetName(), obj.GetAnnotations()[measure.Changed])
					if m.Done() {
						closeDone()
					}
					mu.Unlock()
				default: // an object in the cache since its sync
				}
			}
		})
	}
	synced.Wait()
	m.Ready()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
