//go:build unix

package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/unstructured"
)

// calls creates, reads, changes and deletes pods, in sequence.
func (s *side) calls(ctx context.Context, m *measure.Meter) error {
	pods := make([]*unstructured.Object, m.Count)
	err := m.Calls("create", m.Count, func(i int) (err error) {
		pods[i], err = s.pods.Create(ctx, &unstructured.Object{Object: measure.NewPod()}, nil)
		return err
	})
	if err != nil {
		return err
	}
	err = m.Calls("get", m.Count, func(i int) (err error) {
		pods[i], err = s.pods.Get(ctx, pods[i].GetName(), nil)
		return err
	})
	if err != nil {
		return err
	}
	err = m.Calls("update", m.Count, func(i int) (err error) {
		pods[i].SetAnnotations(map[string]string{"changed": "yes"})
		pods[i], err = s.pods.Update(ctx, pods[i], nil)
		return err
	})
	if err != nil {
		return err
	}
	now := int64(0)
	for _, pod := range pods {
		m.See(pod.GetName())
		if _, err := s.pods.Delete(ctx, pod.GetName(), &metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return err
		}
	}
	return nil
}

// gets reads each pod by its name, in sequence.
func (s *side) gets(ctx context.Context, m *measure.Meter) error {
	return m.Calls("get", m.Count, func(i int) error {
		pod, err := s.pods.Get(ctx, measure.PodName(i), nil)
		if err == nil {
			m.See(pod.GetName())
		}
		return err
	})
}

// applies applies pods with a new annotation, in sequence.
func (s *side) applies(ctx context.Context, m *measure.Meter) error {
	return m.Calls("apply", m.Count, func(i int) error {
		pod, err := s.pods.Apply(ctx, &unstructured.Object{Object: measure.AppliedPod(i)}, &metav1.ApplyOptions{FieldManager: measure.FieldManager, Force: true})
		if err == nil {
			m.See(pod.GetName())
		}
		return err
	})
}
