//go:build unix

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/anykind/anykind/dev/bench/internal/program"
)

// controllerRuntime is the program with controller-runtime. Each manager is a task; the suffix overAnykind means that anykind's
// constructors make the manager's client, cache and mapper.
const (
	controllerRuntime = "controllerruntime"
	overAnykind       = "-anykind"
)

// controllerRuntimeComparisons compares caches with controller-runtime's caches, and controller-runtime's managers over anykind
// with managers over client-go.
func controllerRuntimeComparisons(pods []int) []comparison {
	var all []comparison
	for _, count := range pods {
		add := func(name, what, figure string, aim float64, ours, theirs run) {
			all = append(all, comparison{fmt.Sprintf("%s/%d", name, count), what, aim, cost{ours, figure}, cost{theirs, figure}})
		}
		for _, form := range []struct {
			suffix, ours, theirs, what string
			heapAim, cpuAim            float64
		}{
			{"", "cache", "cache", "a cache of full objects, against controller-runtime's of unstructured ones", 0.65, 0.35},
			{"-lazy", "cache-lazy", "cache", "a cache of lazy objects, against the same", 0.20, 0.35},
			{"-typed", "cache", "cache-typed", "a cache of full objects, against controller-runtime's of typed ones over protobuf", 0.9, 1},
			{"-typed-lazy", "cache-lazy", "cache-typed", "a cache of lazy objects, against the same", 0.5, 1},
			{"-metadata", "cache-metadata", "cache-metadata", "a cache of metadata, against controller-runtime's over protobuf", 0.9, 1},
		} {
			ours := run{"ours", form.ours, count}
			theirs := run{controllerRuntime, form.theirs, count}
			add("cache-controllerruntime"+form.suffix+"-heap", "live heap of "+form.what, "held", form.heapAim, ours, theirs)
			add("cache-controllerruntime"+form.suffix+"-cpu", "CPU until it is synced: "+form.what, "sync-cpu", form.cpuAim, ours, theirs)
		}
		for _, form := range managerForms {
			for _, figure := range managerFigures {
				after, before := form.runs(count)
				add("manager-"+form.task+"-"+figure.name, figure.what+" of a controller-runtime manager of "+form.what+", over anykind against client-go",
					figure.figure, form.aims[figure.name], after, before)
			}
		}
	}
	return all
}

var managerFigures = []struct{ name, figure, what, unit string }{
	{"start", "start-wall", "time until each pod is reconciled", "s"},
	{"cpu", "start-cpu", "CPU until then", "s"},
	{"heap", "held", "live heap then", "MB"},
}

// managerForm is the form of a manager's objects.
type managerForm struct {
	task, what string
	aims       map[string]float64
}

var managerForms = []managerForm{
	{"unstructured", "unstructured pods", map[string]float64{"start": 1, "cpu": 0.5, "heap": 0.5}},
	{"metadata", "pods' metadata", map[string]float64{"start": 1, "cpu": 1, "heap": 1}},
	{"typed", "typed pods", map[string]float64{"start": 1, "cpu": 1, "heap": 1}},
}

// runs returns the runs with anykind and without.
func (f managerForm) runs(count int) (after, before run) {
	return run{controllerRuntime, "manager-" + f.task + overAnykind, count}, run{controllerRuntime, "manager-" + f.task, count}
}

// managerRow is a line of the page: start, CPU and heap of a manager, each "before → after (ratio)".
type managerRow struct {
	Form    string
	Pods    int
	Figures []string
}

// managerRows returns a row for each form and number of pods.
func managerRows(pods []int, kept *results) []managerRow {
	var rows []managerRow
	for _, form := range managerForms {
		for _, count := range pods {
			row := managerRow{Form: form.task, Pods: count}
			afterRun, beforeRun := form.runs(count)
			for _, figure := range managerFigures {
				before := kept.of(cost{beforeRun, figure.figure})
				after := kept.of(cost{afterRun, figure.figure})
				scale := 1.0
				if figure.unit == "MB" {
					scale = 1e-6
				}
				row.Figures = append(row.Figures, fmt.Sprintf("%.2f → %.2f %s (%.2f)", before*scale, after*scale, figure.unit, after/before))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// buildControllerRuntime builds the program for its first task: most comparisons do not need it.
func (s *sides) buildControllerRuntime(ctx context.Context) error {
	if s.hasControllerRuntime {
		return nil
	}
	err := program.Build(ctx, "", module+controllerRuntime, filepath.Join(s.dir, controllerRuntime), []string{"-trimpath", "-ldflags=-s -w"}, []string{"CGO_ENABLED=0"})
	s.hasControllerRuntime = err == nil
	return err
}

// moduleFolder returns the folder of this module.
func moduleFolder(ctx context.Context) (string, error) {
	goMod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the folder of this module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(goMod))), nil
}
