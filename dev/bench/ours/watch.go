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
