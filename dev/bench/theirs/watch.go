//go:build unix

package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
