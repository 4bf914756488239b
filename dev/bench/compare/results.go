//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// group is a set of runs measured together, in turns: tasks of a stage with the same count. Both sides of a comparison are in the
// same group, so that they are always measured together.
type group struct {
	name string // of the stage's first task, and the count: "list/5000"
	runs []run
}

// groupRuns returns the groups of the runs, stage by stage, in ascending order of their counts.
func groupRuns(runs []run) []group {
	var groups []group
	for _, tasks := range stages {
		ofStage := slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !slices.Contains(tasks, r.task) })
		slices.SortStableFunc(ofStage, func(a, b run) int { return cmp.Compare(a.count, b.count) })
		for i, r := range ofStage {
			if i == 0 || r.count != ofStage[i-1].count {
				groups = append(groups, group{name: r.groupName()})
			}
			if last := &groups[len(groups)-1]; !slices.Contains(last.runs, r) {
				last.runs = append(last.runs, r)
			}
		}
	}
	return groups
}

// resultsName is the file of the results, beside the page.
const resultsName = "benchmarks.json"

// results are the figures of all groups, by their names, and the profiles of the page. They are kept in a file, for resuming an
// interrupted run and for measuring a single group again.
type results struct {
	path     string // "" means no file
	library  string // of the groups that are added
	Groups   map[string]groupResult
	Profiles []profile
	PodBytes string // length of a pod of the lists
}

// groupResult is the medians of a group's figures.
type groupResult struct {
	Day      string
	Versions versions
	Library  string             // of anykind: the SHA-256 of a program with it, shortened
	Figures  map[string]float64 // by "side/task/figure"
}

// openResults reads the results of a folder. A folder without a file has no results; "" means that they are not kept.
func openResults(docs string) (*results, error) {
	kept := &results{Groups: map[string]groupResult{}}
	if docs == "" {
		return kept, nil
	}
	kept.path = filepath.Join(docs, resultsName)
	data, err := os.ReadFile(kept.path)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, kept); err != nil {
		return nil, fmt.Errorf("read %s: %w", kept.path, err)
	}
	return kept, nil
}

// add replaces the figures of a group, and drops the profiles of its tasks.
func (k *results) add(g group, v versions, figures map[cost]float64) error {
	one := groupResult{Day: time.Now().UTC().Format(time.DateOnly), Versions: v, Library: k.library, Figures: map[string]float64{}}
	for c, value := range figures {
		one.Figures[c.key()] = value
	}
	k.Groups[g.name] = one
	k.Profiles = slices.DeleteFunc(k.Profiles, func(p profile) bool {
		return slices.ContainsFunc(g.runs, func(r run) bool { return r.task == p.Task })
	})
	return k.save()
}

func (k *results) save() error {
	if k.path == "" {
		return nil
	}
	data, err := json.MarshalIndent(k, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(k.path, append(data, '\n'), 0o644)
}

// has reports whether every run of a group was measured with these versions.
func (k *results) has(g group, v versions) bool {
	one := k.Groups[g.name]
	return one.Versions == v && !slices.ContainsFunc(g.runs, func(r run) bool {
		for key := range one.Figures {
			if strings.HasPrefix(key, r.side+"/"+r.task+"/") {
				return false
			}
		}
		return true
	})
}

// missing returns the names of the groups not measured with these versions.
func (k *results) missing(groups []group, v versions) []string {
	var names []string
	for _, g := range groups {
		if !k.has(g, v) {
			names = append(names, g.name)
		}
	}
	return names
}

// older returns the names of the groups measured with another state of the library than this one.
func (k *results) older() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(k.Groups)), func(name string) bool { return k.Groups[name].Library == k.library })
}

// isMeasured reports whether the figure is kept. A group that was measured before a figure was added lacks it.
func (k *results) isMeasured(c cost) bool {
	_, found := k.Groups[c.groupName()].Figures[c.key()]
	return found
}

// of returns a figure, or 0 for an unmeasured figure.
func (k *results) of(c cost) float64 {
	return k.Groups[c.groupName()].Figures[c.key()]
}

// groupName returns the name of the group of a run.
func (r run) groupName() string {
	for _, tasks := range stages {
		if slices.Contains(tasks, r.task) {
			return fmt.Sprintf("%s/%d", tasks[0], r.count)
		}
	}
	return ""
}

// days returns the first and the last day of the groups, joined by "to" unless they are equal.
func (k *results) days() string {
	var days []string
	for _, one := range k.Groups {
		days = append(days, one.Day)
	}
	if first, last := slices.Min(days), slices.Max(days); first != last {
		return first + " to " + last
	}
	return days[0]
}

// key returns the name of the figure within its group.
func (c cost) key() string { return c.side + "/" + c.task + "/" + c.figure }
