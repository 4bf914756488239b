//go:build unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/anykind/anykind/transport"
)

// mixedComparisons compares anykind's caches of many kinds with two sets of informers: informers of the dynamic client, and typed
// informers for all kinds with a typed client.
func mixedComparisons(count int) []comparison {
	const objects = "pods of many workloads, deployments, config maps, secrets, events and 50 kinds of custom resources"
	var all []comparison
	for _, figure := range []struct {
		name, what, figure string
		aim, typedAim      float64
	}{
		{"sync-cpu", "CPU until caches of %s are synced", "sync-cpu", 0.35, 1},
		{"heap", "live heap of synced caches of %s", "held", 0.65, 0.9},
		{"rss", "peak RSS until caches of %s are synced", "sync-rss", 0.65, 1},
		{"event-cpu", "CPU of a change of labels, spec and status in caches of %s, with one consumer each", "event-cpu", 0.5, 1},
	} {
		for _, form := range []struct{ suffix, task, what string }{
			{"", "mixed", "full objects"}, {"-lazy", "mixed-lazy", "lazy objects"}, {"-packed", "mixed-packed", "packed objects"},
		} {
			ours := cost{run{"ours", form.task, count}, figure.figure}
			what := fmt.Sprintf(figure.what, form.what) + ": " + objects
			all = append(all,
				comparison{fmt.Sprintf("mixed-%s%s/%d", figure.name, form.suffix, count), what, figure.aim, ours, cost{run{"theirs", "mixed", count}, figure.figure}},
				comparison{fmt.Sprintf("mixed-typed-%s%s/%d", figure.name, form.suffix, count),
					what + ", against informers of typed objects over protobuf and, for custom resources, of unstructured ones",
					figure.typedAim, ours, cost{run{"theirs", "mixed-typed", count}, figure.figure}},
			)
		}
	}
	return all
}

// prepareMixed creates a mixed set of objects, and returns their place with a change for each object.
func (s *server) prepareMixed(ctx context.Context, count int) (place, error) {
	kinds, err := readKinds(customKinds)
	if err != nil {
		return place{}, err
	}
	if err := s.defineKinds(ctx, kinds); err != nil {
		return place{}, err
	}
	set := &mixedSet{fmt.Sprintf("bench-mixed-%d", count), kinds}
	if err := s.createNamespace(ctx, set.namespace); err != nil {
		return place{}, err
	}
	if err := s.createMixed(ctx, set.namespace, count, set.object); err != nil {
		return place{}, err
	}
	change := func(ctx context.Context) error { return s.changeMixed(ctx, set.namespace, count, set.object) }
	return place{namespace: set.namespace, resources: strings.Join(set.resources(), ","), change: change}, change(ctx) // adds a status
}

// createMixed creates objects.
func (s *server) createMixed(ctx context.Context, namespace string, count int, object func(i int) *mixed) error {
	return s.each(ctx, count, func(ctx context.Context, i int) error {
		obj := object(i)
		if err := s.write(ctx, http.MethodPost, obj.path(namespace, ""), obj.body()); err != nil {
			return fmt.Errorf("create %s %s: %w", obj.resource, obj.name, err)
		}
		return nil
	})
}

// changeMixed changes each object once.
func (s *server) changeMixed(ctx context.Context, namespace string, count int, object func(i int) *mixed) error {
	return s.each(ctx, count, func(ctx context.Context, i int) error {
		obj := object(i)
		if err := s.patch(ctx, obj.path(namespace, obj.name)+obj.changed, obj.change(time.Now())); err != nil {
			return fmt.Errorf("change %s %s: %w", obj.resource, obj.name, err)
		}
		return nil
	})
}

// defineKinds creates the definitions of custom resources and waits until all are served.
func (s *server) defineKinds(ctx context.Context, kinds []customKind) error {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = kind.plural + "." + kind.group
		if err := s.write(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind.definition()); err != nil {
			return fmt.Errorf("define %s: %w", names[i], err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, definitionsTimeout)
	defer cancel()
	_, err := s.client.WaitForResources(ctx, names...)
	return err
}

// patch sends a merge patch.
func (s *server) patch(ctx context.Context, path string, body []byte) error {
	response, err := s.conn.Do(ctx, &transport.Request{
		Method: http.MethodPatch, Path: path, Body: body, Header: http.Header{"Content-Type": {"application/merge-patch+json"}},
	})
	if err != nil {
		return err
	}
	return response.Body.Close()
}
