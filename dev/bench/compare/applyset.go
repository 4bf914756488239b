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

// applySetComparisons compares package applyset with Flux's library.
func applySetComparisons(pods []int) []comparison {
	var all []comparison
	count := min(slices.Min(pods), maxSetObjects)
	ours := run{"ours", "applyset", count}
	theirs := run{flux, "applyset", count}
	for _, stage := range []struct {
		name, what       string
		cpu, requestsAim float64
	}{
		{"first", fmt.Sprintf("first apply of %d objects of ten kinds", count), 0.5, 1},
		{"unchanged", "the same objects again", 0.5, 0.05},
		{"changed", fmt.Sprintf("one of %d objects is changed", count), 0.5, 0.05},
		{"prune", fmt.Sprintf("%d objects leave the set", count/10), 0.5, 1},
	} {
		for _, figure := range []struct {
			name, what string
			aim        float64
		}{
			{"cpu", "CPU", stage.cpu}, {"requests", "requests", stage.requestsAim}, {"wall", "time", 1}, {"rss", "peak RSS so far", 1},
		} {
			all = append(all, comparison{
				"applyset-" + stage.name + "-" + figure.name, figure.what + ", " + stage.what, figure.aim,
				cost{ours, stage.name + "-" + figure.name}, cost{theirs, stage.name + "-" + figure.name},
			})
		}
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

// manifestName is the file with the objects of a set.
const manifestName = "set.yaml"

// writeSet writes the objects of a set, without a namespace.
func (s *server) writeSet(count int) error {
	objects, err := measure.SetObjects("", count)
	if err != nil {
		return err
	}
	text, err := unstructured.EncodeYAML(objects...)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, manifestName), text, 0o600)
}
