//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/anykind/anykind/dev/bench/internal/measure"
	"github.com/anykind/anykind/dev/bench/internal/program"
	"github.com/anykind/anykind/unstructured"
)

// flux is the program with Flux's library for server-side apply.
const flux = "flux"

// maxSetObjects is the number of objects of a set, unless all lists are shorter.
const maxSetObjects = 1000

// maxDiffObjects is the number of objects of a diff, unless all lists are shorter.
const maxDiffObjects = 200

// applySetComparisons compares package applyset with Flux's library, and anyctl with kubectl.
func applySetComparisons(pods []int) []comparison {
	var all []comparison
	count := min(slices.Min(pods), maxSetObjects)
	for _, peer := range []struct {
		task, side, rss string
		cpuAim, rssAim  float64
	}{
		{"applyset", flux, "peak RSS so far", 0.5, 1},
		{"cli-applyset", "theirs", "peak RSS of anyctl apply --prune, against kubectl's", 0.5, 0.4},
	} {
		ours := run{"ours", peer.task, count}
		theirs := run{peer.side, peer.task, count}
		for _, stage := range []struct {
			name, what  string
			requestsAim float64
		}{
			{"first", fmt.Sprintf("first apply of %d objects of ten kinds", count), 1},
			{"unchanged", "the same objects again", 0.05},
			{"changed", fmt.Sprintf("one of %d objects is changed", count), 0.05},
			{"prune", fmt.Sprintf("%d objects leave the set", count/10), 1},
		} {
			for _, figure := range []struct {
				name, what string
				aim        float64
			}{
				{"cpu", "CPU", peer.cpuAim}, {"requests", "requests", stage.requestsAim}, {"wall", "time", 1}, {"rss", peer.rss, peer.rssAim},
			} {
				all = append(all, comparison{
					peer.task + "-" + stage.name + "-" + figure.name, figure.what + ", " + stage.what, figure.aim,
					cost{ours, stage.name + "-" + figure.name}, cost{theirs, stage.name + "-" + figure.name},
				})
			}
		}
	}
	diff := func(side string) run { return run{side, "cli-diff", min(count, maxDiffObjects)} }
	for _, figure := range []struct {
		name, what string
		aim        float64
	}{{"cpu", "CPU", 0.5}, {"requests", "requests", 1}, {"wall", "time", 0.5}, {"rss", "peak RSS", 0.5}} {
		all = append(all, comparison{
			"cli-diff-" + figure.name, fmt.Sprintf("%s of anyctl diff --server-side of %d objects, against kubectl's", figure.what, diff("").count), figure.aim,
			cost{diff("ours"), figure.name}, cost{diff("theirs"), figure.name},
		})
	}
	return all
}

// buildFlux builds Flux's program before its first run.
func (s *sides) buildFlux(ctx context.Context) error {
	if s.hasFlux {
		return nil
	}
	err := program.Build(ctx, "", module+flux, filepath.Join(s.dir, flux), []string{"-trimpath", "-ldflags=-s -w"}, []string{"CGO_ENABLED=0"})
	s.hasFlux = err == nil
	return err
}

// cliSet measures `apply --prune` in the stages of a set, each a process, in a namespace of its own. -v=6 logs the requests.
func (s *sides) cliSet(ctx context.Context, server *server, r run) (measure.Figures, error) {
	namespace, stages, err := newSet(ctx, server, r)
	if err != nil {
		return nil, err
	}
	figures := measure.Figures{}
	for _, stage := range stages {
		path, err := s.writeSet(stage.Objects)
		if err != nil {
			return nil, err
		}
		args := []string{"apply", "--server-side", "--prune", "--applyset=set", "-v=6", "-n", namespace, "-f", path}
		taken, err := s.process(ctx, r.side, args, r.count, 0) // a pruned object has a line, too
		if err != nil {
			return nil, fmt.Errorf("%s: %w", stage.Name, err)
		}
		for name, value := range taken {
			figures[stage.Name+"-"+name] = value
		}
	}
	return figures, nil
}

// cliDiff measures `diff` of a set with a changed object. -v=6 logs the requests.
func (s *sides) cliDiff(ctx context.Context, server *server, r run) (measure.Figures, error) {
	namespace, stages, err := newSet(ctx, server, r)
	if err != nil {
		return nil, err
	}
	path, err := s.writeSet(stages[0].Objects)
	if err != nil {
		return nil, err
	}
	if _, err := s.process(ctx, r.side, []string{"apply", "--server-side", "-n", namespace, "-f", path}, r.count, 0); err != nil {
		return nil, err
	}
	if path, err = s.writeSet(stages[2].Objects); err != nil {
		return nil, err
	}
	const differs = 1 // exit code
	return s.process(ctx, r.side, []string{"diff", "--server-side", "-v=6", "-n", namespace, "-f", path}, 1, differs)
}

// newSet creates the namespace of a set and returns the set's stages.
func newSet(ctx context.Context, server *server, r run) (namespace string, stages []measure.SetStage, err error) {
	server.sets++
	namespace = fmt.Sprintf("bench-set-%d", server.sets)
	if err := server.createNamespace(ctx, namespace); err != nil {
		return "", nil, err
	}
	stages, err = measure.SetStages("", r.count)
	return namespace, stages, err
}

// writeSet writes a manifest.
func (s *sides) writeSet(objects []*unstructured.Object) (path string, err error) {
	text, err := unstructured.EncodeYAML(objects...)
	if err != nil {
		return "", err
	}
	path = filepath.Join(s.dir, "set.yaml")
	return path, os.WriteFile(path, text, 0o600)
}
