//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dynamic"
)

// churn receives an hour's changes in a cache of full objects.
func (s *side) churn(ctx context.Context, m *measure.Meter) error {
	return churning(ctx, m, newFull(s.pods))
}

// churnLazy is churn for lazy objects.
func (s *side) churnLazy(ctx context.Context, m *measure.Meter) error {
	return churning(ctx, m, newLazy(s.pods))
}

// churnPacked is churn for packed lazy objects.
func (s *side) churnPacked(ctx context.Context, m *measure.Meter) error {
	return churning(ctx, m, newPacked(s.pods))
}

// churning measures the memory of a synced cache, and after all changes.
func churning[T any, P metaObject[T]](ctx context.Context, m *measure.Meter, pods *cache.Cache[T]) error {
	return running(ctx, pods, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		idle := time.AfterFunc(measure.ChurnTimeout, stop)
		defer idle.Stop()
		objects := 0 // once synced
		for change := range pods.Changes(ctx) {
			idle.Reset(measure.ChurnTimeout)
			switch {
			case change.Type == dynamic.Synced:
				objects = len(pods.List("", nil))
				m.Resident("synced")
				m.Ready()
			case objects > 0 && change.Object != nil && change.Type != watch.Deleted:
				pod := P(change.Object)
				m.SeeSequence(pod.GetName(), pod.GetAnnotations()[measure.Sequence], objects)
			}
			if m.Done() {
				m.Resident("churned")
				return nil
			}
		}
		if ctx.Err() != nil {
			return m.MissingChanges(objects)
		}
		return fmt.Errorf("the changes ended: %w", pods.WaitForSync(ctx))
	})
}
