//go:build unix

package main

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// cacheTyped fills an informer of typed objects, received as protobuf.
func (s *side) cacheTyped(ctx context.Context, m *measure.Meter) error {
	informer, err := s.typedInformer()
	if err != nil {
		return err
	}
	return filling(ctx, m, informer)
}

// cacheTypedStripped is cacheTyped without managedFields, the usual Transform.
func (s *side) cacheTypedStripped(ctx context.Context, m *measure.Meter) error {
	informer, err := s.typedInformer()
	if err != nil {
		return err
	}
	err = informer.SetTransform(func(obj any) (any, error) {
		pod, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		pod.SetManagedFields(nil)
		return obj, nil
	})
	if err != nil {
		return err
	}
	return filling(ctx, m, informer)
}

// cacheMetadata fills an informer of metadata, received as protobuf.
func (s *side) cacheMetadata(ctx context.Context, m *measure.Meter) error {
	client, err := metadata.NewForConfig(s.config)
	if err != nil {
		return err
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	return filling(ctx, m, metadatainformer.NewFilteredMetadataInformer(client, podsResource, s.namespace, 0, indexers, nil).Informer())
}

// cacheEventTyped receives each change of the objects of an informer of typed objects.
func (s *side) cacheEventTyped(ctx context.Context, m *measure.Meter) error {
	informer, err := s.typedInformer()
	if err != nil {
		return err
	}
	return receiving(ctx, m, informer)
}

// typedInformer returns the typed informer of the pods.
func (s *side) typedInformer() (cache.SharedIndexInformer, error) {
	return s.typedInformerOf(podsResource, &corev1.Pod{}, corev1.AddToScheme)
}

// typedPods returns the client of typed pods.
func (s *side) typedPods() (rest.Interface, error) {
	return s.typedClient(podsResource, corev1.AddToScheme)
}

// pagerTyped is pager with typed objects, received as protobuf.
func (s *side) pagerTyped(ctx context.Context, m *measure.Meter) error {
	client, err := s.typedPods()
	if err != nil {
		return err
	}
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		pods := &corev1.PodList{}
		request := client.Get().Namespace(s.namespace).Resource(podsResource.Resource).VersionedParams(&opts, metav1.ParameterCodec)
		return pods, request.Do(ctx).Into(pods)
	})
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		pod, err := meta.Accessor(obj)
		if err == nil {
			m.See(pod.GetName())
		}
		return err
	})
}

// getsTyped is gets with typed objects, received as protobuf.
func (s *side) getsTyped(ctx context.Context, m *measure.Meter) error {
	client, err := s.typedPods()
	if err != nil {
		return err
	}
	return m.Calls("get", m.Count, func(i int) error {
		pod := &corev1.Pod{}
		err := client.Get().Namespace(s.namespace).Resource(podsResource.Resource).Name(measure.PodName(i)).
			VersionedParams(&metav1.GetOptions{}, metav1.ParameterCodec).Do(ctx).Into(pod)
		m.See(pod.Name)
		return err
	})
}

// appliesTyped is applies with typed objects, received as protobuf. Typed clients, too, send an apply as JSON.
func (s *side) appliesTyped(ctx context.Context, m *measure.Meter) error {
	client, err := s.typedPods()
	if err != nil {
		return err
	}
	force := true
	opts := &metav1.PatchOptions{FieldManager: measure.FieldManager, Force: &force}
	return m.Calls("apply", m.Count, func(i int) error {
		body, err := json.Marshal(measure.AppliedPod(i))
		if err != nil {
			return err
		}
		pod := &corev1.Pod{}
		err = client.Patch(types.ApplyPatchType).Namespace(s.namespace).Resource(podsResource.Resource).Name(measure.AppliedName(i)).
			VersionedParams(opts, metav1.ParameterCodec).Body(body).Do(ctx).Into(pod)
		m.See(pod.Name)
		return err
	})
}

// typedInformerOf returns an informer like the typed client's factories.
func (s *side) typedInformerOf(gvr schema.GroupVersionResource, obj runtime.Object, addToScheme func(*runtime.Scheme) error) (cache.SharedIndexInformer, error) {
	client, err := s.typedClient(gvr, addToScheme)
	if err != nil {
		return nil, err
	}
	objects := cache.NewListWatchFromClient(client, gvr.Resource, s.namespace, fields.Everything())
	return cache.NewSharedIndexInformer(objects, obj, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), nil
}

// typedClient returns a client like the typed clients with protobuf.
func (s *side) typedClient(gvr schema.GroupVersionResource, addToScheme func(*runtime.Scheme) error) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, err
	}
	group := gvr.GroupVersion()
	config := rest.CopyConfig(s.config)
	config.APIPath = "/apis"
	config.GroupVersion = &group
	if group.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return rest.RESTClientFor(config)
}
