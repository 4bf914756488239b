//go:build unix

package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// list is a single request, with all objects in memory.
func (s *side) list(ctx context.Context, m *measure.Meter) error {
	list, err := s.pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		m.See(list.Items[i].GetName())
	}
	return nil
}

// pager iterates over pages of 500 and fetches the next page meanwhile.
func (s *side) pager(ctx context.Context, m *measure.Meter) error {
	return s.eachItem(ctx, func(pod *unstructuredv1.Unstructured) { m.See(pod.GetName()) })
}

// iterate is pager, with heap samples.
func (s *side) iterate(ctx context.Context, m *measure.Meter) error {
	return s.eachItem(ctx, func(pod *unstructuredv1.Unstructured) {
		m.See(pod.GetName())
		m.SampleHeap()
	})
}

func (s *side) eachItem(ctx context.Context, see func(pod *unstructuredv1.Unstructured)) error {
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return s.pods.List(ctx, opts)
	})
	return pages.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		pod, ok := obj.(*unstructuredv1.Unstructured)
		if !ok {
			return fmt.Errorf("%T is no pod", obj)
		}
		see(pod)
		return nil
	})
}

// lazy reads two fields of each pod.
func (s *side) lazy(ctx context.Context, m *measure.Meter) error {
	list, err := s.pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		phase, _, err := unstructuredv1.NestedString(pod.Object, "status", "phase")
		if err != nil || phase != "Running" {
			return fmt.Errorf("pod %s is %q: %w", pod.GetName(), phase, err)
		}
		m.See(pod.GetName())
	}
	return nil
}
