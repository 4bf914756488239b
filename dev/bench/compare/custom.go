//go:build unix

package main

import (
	"context"
	"fmt"
)

// customGroup and customName are a kind of the corpus, for caches of custom resources. Its objects are about as long as pods
// without a status.
const customGroup, customName = "argoproj.io", "Rollout"

// customComparisons compares caches of a kind of custom resources. There is no typed informer for it.
func customComparisons(count int) []comparison {
	var all []comparison
	theirs := run{"theirs", "custom", count}
	for _, form := range []struct {
		suffix, what    string
		cpu, heap, peak float64
		ours            run
	}{
		{"", "full", 0.35, 0.65, 0.65, run{"ours", "custom", count}},
		{"-lazy", "lazy", 0.35, 0.2, 0.3, run{"ours", "custom-lazy", count}},
		{"-packed", "packed", 0.5, 0.06, 0.3, run{"ours", "custom-packed", count}},
	} {
		add := func(name, what, figure string, aim float64) {
			all = append(all, comparison{
				fmt.Sprintf("custom-%s%s/%d", name, form.suffix, count), fmt.Sprintf(what, form.what), aim, cost{form.ours, figure}, cost{theirs, figure},
			})
		}
		add("cpu", "CPU until a cache of %s custom resources is synced", "sync-cpu", form.cpu)
		add("heap", "live heap of a synced cache of %s custom resources", "held", form.heap)
		add("peak", "heap obtained from the system until a cache of %s custom resources is synced", "sync-peak", form.peak)
	}
	return append(all, comparison{
		fmt.Sprintf("custom-packed-heap/%d", count), "live heap of a synced cache of packed custom resources, against anykind's own of lazy ones", 0.3,
		cost{run{"ours", "custom-packed", count}, "held"}, cost{run{"ours", "custom-lazy", count}, "held"},
	})
}

// prepareCustom creates custom resources, each changed once, and returns their place.
func (s *server) prepareCustom(ctx context.Context, count int) (place, error) {
	kind, err := readKind(customGroup, customName)
	if err != nil {
		return place{}, err
	}
	if err := s.defineKinds(ctx, []customKind{kind}); err != nil {
		return place{}, err
	}
	at := place{namespace: fmt.Sprintf("bench-custom-%d", count), resources: kind.resource()}
	if err := s.createNamespace(ctx, at.namespace); err != nil {
		return place{}, err
	}
	object := func(i int) *mixed { return mixedCustom(kind, i, i) }
	if err := s.createMixed(ctx, at.namespace, count, object); err != nil {
		return place{}, err
	}
	return at, s.changeMixed(ctx, at.namespace, count, object) // adds a status
}

// readKind returns a kind of the corpus.
func readKind(group, name string) (customKind, error) {
	d, err := readDefinitions()
	if err != nil {
		return customKind{}, err
	}
	for _, crd := range d.CRDs {
		if crd.Group == group && crd.Kind == name {
			return d.kind(crd)
		}
	}
	return customKind{}, fmt.Errorf("the corpus in %s has no %s of %s", d.dir, name, group)
}
