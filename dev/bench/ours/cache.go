//go:build unix

package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// newFull returns a cache of full objects.
func newFull(r *dynamic.Resource) *cache.Cache[unstructured.Object] { return cache.New(r, nil) }

// newLazy returns a cache of lazy objects.
func newLazy(r *dynamic.Resource) *cache.Cache[unstructured.Lazy] {
	return cache.New(dynamic.As[unstructured.Lazy](r), nil)
}

// newPacked returns a cache of packed lazy objects.
func newPacked(r *dynamic.Resource) *cache.Cache[unstructured.Lazy] {
	return cache.New(dynamic.As[unstructured.Lazy](r), &cache.Options[unstructured.Lazy]{Pack: packed.New[unstructured.Lazy]()})
}

// cache fills a cache with full objects.
func (s *side) cache(ctx context.Context, m *measure.Meter) error {
	return syncing(ctx, m, newFull(s.pods), (*unstructured.Object).GetName)
}

// cacheLazy fills a cache with lazy objects.
func (s *side) cacheLazy(ctx context.Context, m *measure.Meter) error {
	return syncing(ctx, m, newLazy(s.pods), (*unstructured.Lazy).GetName)
}

// cachePacked fills a cache with packed lazy objects.
func (s *side) cachePacked(ctx context.Context, m *measure.Meter) error {
	return syncing(ctx, m, newPacked(s.pods), (*unstructured.Lazy).GetName)
}

// cacheStripped fills a cache with full objects without their managedFields.
func (s *side) cacheStripped(ctx context.Context, m *measure.Meter) error {
	opts := &cache.Options[unstructured.Object]{Transform: func(pod *unstructured.Object) *unstructured.Object {
		pod.SetManagedFields(nil)
		return pod
	}}
	return syncing(ctx, m, cache.New(s.pods, opts), (*unstructured.Object).GetName)
}

// cacheStrippedLazy fills a cache with lazy objects without their managedFields.
func (s *side) cacheStrippedLazy(ctx context.Context, m *measure.Meter) error {
	opts := &cache.Options[unstructured.Lazy]{Transform: func(pod *unstructured.Lazy) *unstructured.Lazy {
		return pod.Without("metadata", "managedFields")
	}}
	return syncing(ctx, m, cache.New(dynamic.As[unstructured.Lazy](s.pods), opts), (*unstructured.Lazy).GetName)
}

// cacheMetadata fills a cache with metadata.
func (s *side) cacheMetadata(ctx context.Context, m *measure.Meter) error {
	return syncing(ctx, m, newFull(s.pods.Metadata()), (*unstructured.Object).GetName)
}

// cacheMetadataLazy fills a cache with lazy metadata.
func (s *side) cacheMetadataLazy(ctx context.Context, m *measure.Meter) error {
	return syncing(ctx, m, newLazy(s.pods.Metadata()), (*unstructured.Lazy).GetName)
}

// syncing fills a cache and sees its objects.
func syncing[T any](ctx context.Context, m *measure.Meter, pods *cache.Cache[T], nameOf func(*T) string) error {
	return running(ctx, pods, func(ctx context.Context) error {
		if err := m.Stage("sync", func() error { return pods.WaitForSync(ctx) }); err != nil {
			return err
		}
		m.Held()
		for _, pod := range pods.List("", nil) {
			m.See(nameOf(pod))
		}
		return nil
	})
}

// running runs a cache during do.
func running[T any](ctx context.Context, pods *cache.Cache[T], do func(ctx context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = pods.Run(ctx) // WaitForSync returns the error, too
	}()
	defer func() { stop(); <-ended }()
	return do(ctx)
}

// cacheIndex finds the pods of each node.
func (s *side) cacheIndex(ctx context.Context, m *measure.Meter) error {
	pods := cache.New(s.pods, &cache.Options[unstructured.Object]{Indexes: map[string]func(*unstructured.Object) []string{
		"node": func(pod *unstructured.Object) []string {
			node, _, _ := unstructured.Get[string](pod, "spec", "nodeName")
			return []string{node}
		},
	}})
	return running(ctx, pods, func(ctx context.Context) error {
		if err := pods.WaitForSync(ctx); err != nil {
			return err
		}
		for _, node := range measure.Nodes() {
			found, err := pods.ByIndex("node", node)
			if err != nil {
				return err
			}
			for _, pod := range found {
				m.See(pod.GetName())
			}
		}
		return m.Lookups(func(node string) (int, error) {
			found, err := pods.ByIndex("node", node)
			return len(found), err
		})
	})
}

// cacheEvent receives each change of the objects of a cache.
func (s *side) cacheEvent(ctx context.Context, m *measure.Meter) error {
	return receiving(ctx, m, newFull(s.pods))
}

// cacheEventLazy is cacheEvent for lazy objects.
func (s *side) cacheEventLazy(ctx context.Context, m *measure.Meter) error {
	return receiving(ctx, m, newLazy(s.pods))
}

// cacheEventPacked is cacheEvent for packed lazy objects.
func (s *side) cacheEventPacked(ctx context.Context, m *measure.Meter) error {
	return receiving(ctx, m, newPacked(s.pods))
}

// metaObject is the part of an object read by a consumer of changes.
type metaObject[T any] interface {
	*T
	GetName() string
	GetAnnotations() map[string]string
}

// receiving receives each change of the objects of a cache.
func receiving[T any, P metaObject[T]](ctx context.Context, m *measure.Meter, pods *cache.Cache[T]) error {
	return running(ctx, pods, func(ctx context.Context) error {
		for change := range pods.Changes(ctx) {
			if change.Type == dynamic.Synced {
				m.Ready()
			}
			if change.Type == watch.Modified {
				pod := P(change.Object)
				m.SeeChange(pod.GetName(), pod.GetAnnotations()[measure.Changed])
			}
			if m.Done() {
				return nil
			}
		}
		return fmt.Errorf("the changes ended: %w", pods.WaitForSync(ctx))
	})
}
