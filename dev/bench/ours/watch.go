//go:build unix

package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// watch reads the changes since the resourceVersion.
func (s *side) watch(ctx context.Context, m *measure.Meter) error {
	for event, err := range s.pods.Watch(ctx, &metav1.ListOptions{ResourceVersion: m.ResourceVersion}) {
		if err != nil {
			return err
		}
		m.See(event.Object.GetName())
		if m.Done() {
			break
		}
	}
	return nil
}

// watchLive returns a task with several watches of changes as they are made.
func (s *side) watchLive(watches int) measure.Task {
	return func(ctx context.Context, m *measure.Meter) error {
		page, err := s.pods.ListPage(ctx, &metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		return m.Receive(watches, page.ResourceVersion, func(resourceVersion string, see func(name, resourceVersion string) bool) error {
			for event, err := range s.pods.Watch(ctx, &metav1.ListOptions{ResourceVersion: resourceVersion}) {
				if err != nil {
					return err
				}
				if see(event.Object.GetName(), event.Object.GetResourceVersion()) {
					break
				}
			}
			return nil
		})
	}
}
