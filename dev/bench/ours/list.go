//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// list is the usual way: pages of 500, with a single object in memory.
func (s *side) list(ctx context.Context, m *measure.Meter) error {
	for pod, err := range s.pods.List(ctx, nil) {
		if err != nil {
			return err
		}
		m.See(pod.GetName())
	}
	return nil
}

// whole is a single request, with all objects in memory.
func (s *side) whole(ctx context.Context, m *measure.Meter) error {
	page, err := s.pods.ListPage(ctx, nil)
	if err != nil {
		return err
	}
	for _, pod := range page.Items {
		m.See(pod.GetName())
	}
	return nil
}

// lazy reads two fields of each pod, and decodes only these fields.
func (s *side) lazy(ctx context.Context, m *measure.Meter) error {
	for pod, err := range dynamic.As[unstructured.Lazy](s.pods).List(ctx, nil) {
		if err != nil {
			return err
		}
		phase, _, err := unstructured.Get[string](pod, "status", "phase")
		if err != nil || phase != "Running" {
			return fmt.Errorf("pod %s is %q: %w", pod.GetName(), phase, err)
		}
		m.See(pod.GetName())
	}
	return nil
}

// iterate is list, with heap samples.
func (s *side) iterate(ctx context.Context, m *measure.Meter) error {
	for pod, err := range s.pods.List(ctx, nil) {
		if err != nil {
			return err
		}
		m.See(pod.GetName())
		m.SampleHeap()
	}
	return nil
}
