//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// cache returns a task that fills controller-runtime's cache of pods.
func (s *side) cache(f form) measure.Task {
	return func(ctx context.Context, m *measure.Meter) error {
		return s.running(ctx, f, func(ctx context.Context, informer toolscache.SharedIndexInformer) error {
			if err := m.Stage("sync", func() error { return synced(ctx, informer) }); err != nil {
				return err
			}
			m.Held()
			for _, obj := range informer.GetStore().List() {
				pod, err := meta.Accessor(obj)
				if err != nil {
					return err
				}
				m.See(pod.GetName())
			}
			return nil
		})
	}
}

// running runs a cache during do. do receives its informer of pods, started with the cache.
func (s *side) running(ctx context.Context, f form, do func(context.Context, toolscache.SharedIndexInformer) error) error {
	never := 24 * time.Hour
	c, err := cache.New(s.config, cache.Options{
		Scheme: s.scheme, Mapper: s.mapper, SyncPeriod: &never,
		// The cache then lists this namespace only. DefaultNamespaces would hide the informer.
		DefaultFieldSelector: fields.OneTermEqualSelector("metadata.namespace", s.namespace),
	})
	if err != nil {
		return err
	}
	found, err := c.GetInformer(ctx, f.pod(), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	informer, ok := found.(toolscache.SharedIndexInformer)
	if !ok {
		return fmt.Errorf("the cache has a %T of pods", found)
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	err = do(ctx, informer)
	stop()
	if failure := <-ended; err == nil {
		err = failure
	}
	return err
}

// synced waits for the informer without WaitForCacheSync's polling interval of 100 milliseconds.
func synced(ctx context.Context, informer toolscache.SharedIndexInformer) error {
	select {
	case <-informer.HasSyncedChecker().Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
