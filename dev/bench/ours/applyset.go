//go:build unix

package main

import (
	"context"
	"sync/atomic"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured/manifest"
)

// applySet applies and prunes a set.
func (s *side) applySet(ctx context.Context, m *measure.Meter) error {
	set := applyset.New(s.client, applyset.Parent{Namespace: m.Namespace, Name: "set-ours"}, nil)
	return measure.ApplySet(ctx, m, &measure.Applier{
		Requests: s.requests,
		Apply: func(ctx context.Context, objects, _ []*unstructuredv1.Unstructured) (changes int, err error) {
			events, err := set.Apply(ctx, manifest.FromObjects(objects...), nil)
			for _, event := range events {
				switch event.Action {
				case applyset.Created, applyset.Configured, applyset.Pruned:
					changes++
				default:
				}
			}
			return changes, err
		},
	})
}

// countRequests returns a function that counts attempts.
func countRequests(requests *atomic.Int64) func(context.Context, transport.Attempt) {
	return func(context.Context, transport.Attempt) { requests.Add(1) }
}
