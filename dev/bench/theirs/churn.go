//go:build unix

package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// churn receives an hour's changes in an informer.
func (s *side) churn(ctx context.Context, m *measure.Meter) error {
	return churning(ctx, m, s.informer())
}

// churnTyped is churn for typed objects.
func (s *side) churnTyped(ctx context.Context, m *measure.Meter) error {
	informer, err := s.typedInformer()
	if err != nil {
		return err
	}
	return churning(ctx, m, informer)
}

// churning measures the memory of a synced informer, and after all changes.
func churning(ctx context.Context, m *measure.Meter, pods cache.SharedIndexInformer) error {
	handled := make(chan error, m.Count+2)
	var mu sync.Mutex // of the meter
	objects := 0      // set before the first change
	idle := time.AfterFunc(measure.ChurnTimeout, func() {
		mu.Lock()
		defer mu.Unlock()
		handled <- m.MissingChanges(objects)
	})
	defer idle.Stop()
	handle := func(obj any) {
		mu.Lock()
		defer mu.Unlock()
		idle.Reset(measure.ChurnTimeout)
		pod, err := meta.Accessor(obj)
		if err != nil {
			handled <- err
			return
		}
		m.SeeSequence(pod.GetName(), pod.GetAnnotations()[measure.Sequence], objects)
		if m.Done() {
			handled <- nil
		}
	}
	registered, err := pods.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if !isInInitialList {
				handle(obj)
			}
		},
		UpdateFunc: func(_, obj any) { handle(obj) },
	})
	if err != nil {
		return err
	}
	return running(ctx, pods, func(ctx context.Context) error {
		select {
		case <-registered.HasSyncedChecker().Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		mu.Lock()
		objects = len(pods.GetStore().List())
		mu.Unlock()
		m.Resident("synced")
		m.Ready()
		select {
		case err := <-handled:
			m.Resident("churned")
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
