//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// cache fills an informer.
func (s *side) cache(ctx context.Context, m *measure.Meter) error {
	return filling(ctx, m, s.informer())
}

// filling fills an informer and sees its objects.
func filling(ctx context.Context, m *measure.Meter, pods cache.SharedIndexInformer) error {
	return running(ctx, pods, func(ctx context.Context) error {
		if err := m.Stage("sync", func() error { return synced(ctx, pods) }); err != nil {
			return err
		}
		m.Held()
		return see(m, pods.GetStore().List())
	})
}

// informer returns the informer of the pods. It indexes them by namespace, like every factory's informer.
func (s *side) informer() cache.SharedIndexInformer {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.client, 0, s.namespace, nil)
	return factory.ForResource(podsResource).Informer()
}

// synced waits for the informer without WaitForCacheSync's polling interval of 100 milliseconds.
func synced(ctx context.Context, informer cache.SharedIndexInformer) error {
	select {
	case <-informer.HasSyncedChecker().Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// see counts pods as seen.
func see(m *measure.Meter, found []any) error {
	for _, obj := range found {
		pod, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		m.See(pod.GetName())
	}
	return nil
}

// running runs an informer during do.
func running(ctx context.Context, informer cache.SharedIndexInformer, do func(ctx context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	defer func() { stop(); <-ended }()
	return do(ctx)
}

// cacheIndex finds the pods of each node.
func (s *side) cacheIndex(ctx context.Context, m *measure.Meter) error {
	pods := s.informer()
	err := pods.AddIndexers(cache.Indexers{"node": func(obj any) ([]string, error) {
		pod, ok := obj.(*unstructuredv1.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%T is no pod", obj)
		}
		node, _, err := unstructuredv1.NestedString(pod.Object, "spec", "nodeName")
		return []string{node}, err
	}})
	if err != nil {
		return err
	}
	return running(ctx, pods, func(ctx context.Context) error {
		if err := synced(ctx, pods); err != nil {
			return err
		}
		for _, node := range measure.Nodes() {
			found, err := pods.GetIndexer().ByIndex("node", node)
			if err != nil {
				return err
			}
			if err := see(m, found); err != nil {
				return err
			}
		}
		return m.Lookups(func(node string) (int, error) {
			found, err := pods.GetIndexer().ByIndex("node", node)
			return len(found), err
		})
	})
}

// cacheEvent receives each change of the objects of an informer.
func (s *side) cacheEvent(ctx context.Context, m *measure.Meter) error {
	return receiving(ctx, m, s.informer())
}

// receiving receives each change of the objects of an informer.
func receiving(ctx context.Context, m *measure.Meter, pods cache.SharedIndexInformer) error {
	done := make(chan error, 1)
	registered, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
		pod, err := meta.Accessor(obj)
		if err != nil {
			done <- err
			return
		}
		m.SeeChange(pod.GetName(), pod.GetAnnotations()[measure.Changed])
		if m.Done() {
			done <- nil
		}
	}})
	if err != nil {
		return err
	}
	return running(ctx, pods, func(ctx context.Context) error {
		select {
		case <-registered.HasSyncedChecker().Done():
		case <-ctx.Done():
			return errors.New("the informer did not sync")
		}
		m.Ready()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
