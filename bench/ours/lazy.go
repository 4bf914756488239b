//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/anykind/anykind/bench/internal/measure"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// lazy reads two fields of each pod.
func (s *side) lazy(ctx context.Context, m *measure.Meter) error {
	query := url.Values{"limit": {"500"}}
	for {
		next, err := s.lazyPage(ctx, m, query)
		if err != nil || next == "" {
			return err
		}
		query.Set("continue", next)
	}
}

func (s *side) lazyPage(ctx context.Context, m *measure.Meter, query url.Values) (next string, err error) {
	path, err := s.pods.Path("")
	if err != nil {
		return "", err
	}
	response, err := s.pods.Conn().Do(ctx, &transport.Request{Path: path, Query: query})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	items := unstructured.NewListDecoder(response.Body)
	for {
		pod, err := items.NextLazy()
		if err == io.EOF {
			return items.Meta().Continue, nil
		}
		if err != nil {
			return "", err
		}
		phase, _, err := unstructured.Get[string](pod, "status", "phase")
		if err != nil || phase != "Running" {
			return "", fmt.Errorf("pod %s is %q: %w", pod.GetName(), phase, err)
		}
		m.See(pod.GetName())
	}
}
