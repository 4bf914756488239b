//go:build unix

package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// calls creates, reads, changes and deletes pods, in sequence.
func (s *side) calls(ctx context.Context, m *measure.Meter) error {
	pods := make([]*unstructuredv1.Unstructured, m.Count)
	err := m.Calls("create", m.Count, func(i int) (err error) {
		pods[i], err = s.pods.Create(ctx, &unstructuredv1.Unstructured{Object: measure.NewPod()}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	err = m.Calls("get", m.Count, func(i int) (err error) {
		pods[i], err = s.pods.Get(ctx, pods[i].GetName(), metav1.GetOptions{})
		return err
	})
	if err != nil {
		return err
	}
	err = m.Calls("update", m.Count, func(i int) (err error) {
		pods[i].SetAnnotations(map[string]string{"changed": "yes"})
		pods[i], err = s.pods.Update(ctx, pods[i], metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	now := int64(0)
	for _, pod := range pods {
		m.See(pod.GetName())
		if err := s.pods.Delete(ctx, pod.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return err
		}
	}
	return nil
}

// gets reads each pod by its name, in sequence.
func (s *side) gets(ctx context.Context, m *measure.Meter) error {
	return m.Calls("get", m.Count, func(i int) error {
		pod, err := s.pods.Get(ctx, measure.PodName(i), metav1.GetOptions{})
		if err == nil {
			m.See(pod.GetName())
		}
		return err
	})
}

// applies applies pods with a new annotation, in sequence.
func (s *side) applies(ctx context.Context, m *measure.Meter) error {
	return m.Calls("apply", m.Count, func(i int) error {
		pod := &unstructuredv1.Unstructured{Object: measure.AppliedPod(i)}
		pod, err := s.pods.Apply(ctx, pod.GetName(), pod, metav1.ApplyOptions{FieldManager: measure.FieldManager, Force: true})
		if err == nil {
			m.See(pod.GetName())
		}
		return err
	})
}
