//go:build unix

package main

import (
	"context"

	"github.com/anykind/anykind/bench/internal/measure"
)

// list is the usual way: pages of 500, one object in memory at a time.
func (s *side) list(ctx context.Context, m *measure.Meter) error {
	for pod, err := range s.pods.List(ctx, nil) {
		if err != nil {
			return err
		}
		m.See(pod.GetName())
	}
	return nil
}

// whole is one request, all of whose objects are held.
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

// iterate is list, looking at the heap on the way.
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
