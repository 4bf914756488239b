//go:build unix

package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// watch reads the changes since the resourceVersion.
func (s *side) watch(ctx context.Context, m *measure.Meter) error {
	watching, err := s.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: m.ResourceVersion})
	if err != nil {
		return err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		pod, ok := event.Object.(*unstructuredv1.Unstructured)
		if !ok {
			return fmt.Errorf("%s: %v", event.Type, event.Object)
		}
		m.See(pod.GetName())
		if m.Done() {
			break
		}
	}
	return nil
}

// watchLive returns a task with several watches of changes as they are made.
func (s *side) watchLive(watches int) measure.Task {
	return func(ctx context.Context, m *measure.Meter) error {
		return s.receive(ctx, m, watches, s.pods.Watch)
	}
}

// watchLiveTyped is watchLive with typed objects, received as protobuf.
func (s *side) watchLiveTyped(watches int) measure.Task {
	return func(ctx context.Context, m *measure.Meter) error {
		client, err := s.typedPods()
		if err != nil {
			return err
		}
		return s.receive(ctx, m, watches, func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.Watch = true
			return client.Get().Namespace(s.namespace).Resource(podsResource.Resource).VersionedParams(&opts, metav1.ParameterCodec).Watch(ctx)
		})
	}
}

func (s *side) receive(ctx context.Context, m *measure.Meter, watches int, open func(context.Context, metav1.ListOptions) (watch.Interface, error)) error {
	page, err := s.pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	return m.Receive(watches, page.GetResourceVersion(), func(resourceVersion string, see func(name, resourceVersion string) bool) error {
		watching, err := open(ctx, metav1.ListOptions{ResourceVersion: resourceVersion})
		if err != nil {
			return err
		}
		defer watching.Stop()
		for event := range watching.ResultChan() {
			pod, err := meta.Accessor(event.Object)
			if err != nil {
				return fmt.Errorf("%s: %v: %w", event.Type, event.Object, err)
			}
			if see(pod.GetName(), pod.GetResourceVersion()) {
				break
			}
		}
		return nil
	})
}
