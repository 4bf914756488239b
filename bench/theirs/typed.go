//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/bench/internal/measure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// cacheTyped fills an informer of typed objects, which come as protobuf.
func (s *side) cacheTyped(ctx context.Context, m *measure.Meter) error {
	informer, err := s.typedInformer()
	if err != nil {
		return err
	}
	return running(ctx, informer, func(ctx context.Context) error {
		if err := m.Stage("sync", func() error { return synced(ctx, informer) }); err != nil {
			return err
		}
		m.Held()
		for _, obj := range informer.GetStore().List() {
			pod, ok := obj.(*corev1.Pod)
			if !ok {
				return fmt.Errorf("%T is no pod", obj)
			}
			m.See(pod.Name)
		}
		return nil
	})
}

// typedInformer is that of the typed client's factories.
func (s *side) typedInformer() (cache.SharedIndexInformer, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(s.config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.AcceptContentTypes, config.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	pods := cache.NewListWatchFromClient(client, "pods", s.namespace, fields.Everything())
	return cache.NewSharedIndexInformer(pods, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), nil
}
