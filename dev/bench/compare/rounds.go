//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/dev/bench/internal/measure"
)

// stages are lists of tasks with a common preparation. Their runs take turns.
var stages = [][]string{
	{"program"}, {"first"},
	{"list", "whole", "drain", "drain-whole", "pager", "lazy", "floor-list", "floor-whole",
		"list-protobuf", "whole-protobuf", "lazy-protobuf", "pager-typed"},
	{"near-list-gzip", "near-list-plain", "near-whole-gzip", "near-whole-plain"}, {"far-list-gzip", "far-list-plain", "far-whole-gzip", "far-whole-plain"},
	{"iterate"}, {"watch"}, {"watch-10", "watch-10-protobuf", "watch-typed-10"}, {"watch-100", "watch-100-protobuf", "watch-typed-100"}, {"calls", "floor-calls"},
	{"gets", "gets-protobuf", "gets-typed"}, {"applies", "applies-protobuf", "applies-typed"},
	// Before the longest caches, whose pods stay in the server's memory: kubectl takes 12 GB for 50,000 pods as YAML.
	{"cli-table", "cli-json", "cli-yaml", "cli-name"},
	{"cache", "cache-lazy", "cache-packed", "cache-typed", "cache-stripped", "cache-stripped-lazy", "cache-metadata", "cache-metadata-lazy",
		"cache-protobuf", "cache-lazy-protobuf", "cache-packed-protobuf", "cache-metadata-lazy-protobuf", "floor-cache", "floor-cache-shared", "floor-cache-lazy",
		"floor-stripped", "floor-metadata", "floor-metadata-shared", "floor-metadata-lazy"},
	{"cache-index"},
	{"manager-unstructured", "manager-metadata", "manager-typed", "manager-unstructured-anykind", "manager-metadata-anykind", "manager-typed-anykind"},
	{"cache-event", "cache-event-protobuf", "cache-event-lazy", "cache-event-packed", "cache-event-typed", "floor-event"}, {"cache-minute"},
	{"cli-complete"}, {"cli-deploy"}, {"cli-version"}, singleTasks, {"cli-api-resources"}, {"cli-delete"}, {"cli-applyset"}, {"cli-diff"}, {"cli-size"}, {"cli-explain", "cli-explain-custom"},
	// The tasks above list all namespaces and definitions, and so come first.
	{"cache-churn", "cache-churn-typed", "cache-churn-lazy", "cache-churn-packed"},
	{"custom", "custom-lazy", "custom-packed"},
	{"mixed", "mixed-lazy", "mixed-packed", "mixed-typed"},
	{"applyset"},
}

// measureAll measures the groups in sequence, and saves the figures of each group.
func measureAll(ctx context.Context, opts *options, server *server, sides *sides, groups []group, v versions, kept *results) error {
	for _, g := range groups {
		figures, err := measureTurns(ctx, opts, server, sides, g)
		if err == nil {
			err = kept.add(g, v, figures)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return nil
}

// measureTurns measures the runs of a group in rounds, with each run once a round, so that external load affects both sides. It
// returns the median of each figure.
func measureTurns(ctx context.Context, opts *options, server *server, sides *sides, g group) (map[cost]float64, error) {
	begin := time.Now()
	turn := slices.Clone(g.runs)
	place, err := server.prepare(ctx, turn[0])
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	fmt.Fprintf(opts.progress, "compare: prepared %s in %s\n", g.name, time.Since(begin).Round(time.Second))
	begin = time.Now()
	rounds := opts.roundsOf(turn[0])
	taken := map[cost][]float64{}
	for round := range rounds {
		if round > 0 { // the second run benefits from the server's caches
			slices.Reverse(turn)
		}
		for _, r := range turn {
			figures, err := sides.do(ctx, server, r, place)
			if err != nil {
				return nil, err
			}
			for name, value := range figures {
				taken[cost{r, name}] = append(taken[cost{r, name}], value)
			}
		}
	}
	medians := map[cost]float64{}
	for c, values := range taken {
		slices.Sort(values)
		medians[c] = values[len(values)/2]
	}
	fmt.Fprintf(opts.progress, "compare: %d rounds of %s in %s\n", rounds, g.name, time.Since(begin).Round(time.Second))
	return medians, nil
}

// roundsOf returns the number of rounds of a run.
func (o *options) roundsOf(r run) int {
	switch {
	case r.task == "program", r.task == "cli-size", r.task == "iterate" && r.count > 10_000:
		return 1 // the live heap of a long list varies by less than 1 %, and a program's size is constant
	case o.rounds > 0:
		return o.rounds
	case strings.HasPrefix(r.task, "cache-churn"):
		return 1 // a minute each
	case r.task == "first":
		return 11
	case r.count > 10_000, r.task == "iterate", r.task == "applyset", r.task == "cli-applyset", strings.HasPrefix(r.task, "mixed"): // each run writes all objects again
		return 3
	default:
		return 7
	}
}

// place is the prepared environment of a run.
type place struct {
	namespace, resourceVersion string
	resources                  string // of the objects, unless all are pods
	kubeconfig                 string // of a proxy of the server; "" means the server's
	// change changes each object once, when a task is ready.
	change func(ctx context.Context) error
}

// do executes a run.
func (s *sides) do(ctx context.Context, server *server, r run, at place) (measure.Figures, error) {
	if strings.HasPrefix(r.task, "cli-") {
		return s.cli(ctx, server, r, at)
	}
	switch r.task {
	case "program":
		return s.program(ctx, r.side)
	case "first":
		return s.first(ctx, r.side)
	default:
		return s.task(ctx, server, r, at)
	}
}
