//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// custom fills an informer of the dynamic client for a resource.
func (s *side) custom(ctx context.Context, m *measure.Meter) error {
	resources, err := m.ParseResources()
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.client, 0, s.namespace, nil)
	return filling(ctx, m, factory.ForResource(resources[0]).Informer())
}

// mixed fills an informer of the dynamic client for each resource and receives a change of each object.
func (s *side) mixed(ctx context.Context, m *measure.Meter) error {
	resources, err := m.ParseResources()
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.client, 0, s.namespace, nil)
	informers := make([]cache.SharedIndexInformer, len(resources))
	for i, gvr := range resources {
		informers[i] = factory.ForResource(gvr).Informer()
	}
	return mixing(ctx, m, informers)
}

// mixedTyped is mixed with typed objects over protobuf for the kinds with a typed client.
func (s *side) mixedTyped(ctx context.Context, m *measure.Meter) error {
	resources, err := m.ParseResources()
	if err != nil {
		return err
	}
	typed := map[string]runtime.Object{
		"pods": &corev1.Pod{}, "configmaps": &corev1.ConfigMap{}, "secrets": &corev1.Secret{}, "events": &corev1.Event{}, "deployments": &appsv1.Deployment{},
	}
	groups := map[schema.GroupVersion]func(*runtime.Scheme) error{
		corev1.SchemeGroupVersion: corev1.AddToScheme, appsv1.SchemeGroupVersion: appsv1.AddToScheme,
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.client, 0, s.namespace, nil)
	informers := make([]cache.SharedIndexInformer, len(resources))
	for i, gvr := range resources {
		addToScheme, isTyped := groups[gvr.GroupVersion()]
		if !isTyped {
			informers[i] = factory.ForResource(gvr).Informer()
			continue
		}
		if informers[i], err = s.typedInformerOf(gvr, typed[gvr.Resource], addToScheme); err != nil {
			return err
		}
	}
	return mixing(ctx, m, informers)
}

// mixing fills informers, then receives a change of each object.
func mixing(ctx context.Context, m *measure.Meter, informers []cache.SharedIndexInformer) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() { stop(); running.Wait() }()
	for _, informer := range informers {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	err := m.Stage("sync", func() error {
		for _, informer := range informers {
			if err := synced(ctx, informer); err != nil {
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
	for _, informer := range informers {
		objects += len(informer.GetStore().List())
	}
	if objects != m.Count {
		return fmt.Errorf("%d objects in the informers, want %d", objects, m.Count)
	}
	return handling(ctx, m, informers)
}

// handling receives a change of each object, with a handler for each informer.
func handling(ctx context.Context, m *measure.Meter, informers []cache.SharedIndexInformer) error {
	var mu sync.Mutex // of the meter
	handled := make(chan error, m.Count)
	handler := cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
		changed, err := meta.Accessor(obj)
		if err != nil {
			handled <- err
			return
		}
		mu.Lock()
		defer mu.Unlock()
		m.SeeChange(changed.GetName(), changed.GetAnnotations()[measure.Changed])
		if m.Done() {
			handled <- nil
		}
	}}
	for _, informer := range informers {
		registered, err := informer.AddEventHandler(handler)
		if err != nil {
			return err
		}
		select {
		case <-registered.HasSyncedChecker().Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.Ready()
	select {
	case err := <-handled:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
