//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// customResource returns the only resource of a task of custom resources.
func (s *side) customResource(m *measure.Meter) (*dynamic.Resource, error) {
	resources, err := m.ParseResources()
	if err != nil {
		return nil, err
	}
	if len(resources) != 1 {
		return nil, fmt.Errorf("%d resources, want one", len(resources))
	}
	return s.client.ForGVR(resources[0]).Namespace(m.Namespace), nil
}

// custom fills a cache with full custom resources.
func (s *side) custom(ctx context.Context, m *measure.Meter) error {
	resource, err := s.customResource(m)
	if err != nil {
		return err
	}
	return syncing(ctx, m, newFull(resource), (*unstructured.Object).GetName)
}

// customLazy fills a cache with lazy custom resources.
func (s *side) customLazy(ctx context.Context, m *measure.Meter) error {
	resource, err := s.customResource(m)
	if err != nil {
		return err
	}
	return syncing(ctx, m, newLazy(resource), (*unstructured.Lazy).GetName)
}

// customPacked fills a cache with packed lazy custom resources.
func (s *side) customPacked(ctx context.Context, m *measure.Meter) error {
	resource, err := s.customResource(m)
	if err != nil {
		return err
	}
	return syncing(ctx, m, newPacked(resource), (*unstructured.Lazy).GetName)
}
