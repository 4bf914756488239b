//go:build unix

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// profile tells where the time, or the memory, of a run of ours goes.
type profile struct{ Task, What, Top string }

// profileMissed takes a profile of each run of ours that missed an aim.
func profileMissed(ctx context.Context, opts *options, server *server, sides *sides, results []result) ([]profile, error) {
	var profiles []profile
	var done []cost
	for _, r := range results {
		kind, ok := profileOf(r.ours)
		seen := cost{r.ours.run, kind}
		if !r.missed() || !ok || slices.Contains(done, seen) {
			continue
		}
		done = append(done, seen)
		fmt.Fprintf(opts.progress, "compare: %s missed its aim: profiling %s of %d\n", r.name, r.ours.task, r.ours.count)
		taken, err := sides.profile(ctx, server, r.ours.run, kind)
		if err != nil {
			return nil, err
		}
		profiles = append(profiles, taken)
	}
	return profiles, nil
}

// profileOf is the kind of profile that explains a figure. Processes of a few milliseconds have none.
func profileOf(c cost) (kind string, ok bool) {
	switch {
	case c.task == "program" || c.task == "first" || c.figure == "heap":
		return "", false
	case strings.HasSuffix(c.figure, "alloc"), strings.HasSuffix(c.figure, "allocs"):
		return "allocs", true
	default:
		return "cpu", true
	}
}

func (s *sides) profile(ctx context.Context, server *server, r run, kind string) (profile, error) {
	at, err := server.prepare(ctx, r)
	if err != nil {
		return profile{}, err
	}
	file := filepath.Join(s.dir, fmt.Sprintf("%s-%d", r.task, r.count))
	if _, err := s.task(ctx, r, at, "-profile", file); err != nil {
		return profile{}, err
	}
	args := []string{"tool", "pprof", "-top", "-cum", "-nodecount=40", "-hide=^(main\\.|runtime\\.(main|mcall|goexit)|.*/measure\\.)"}
	taken := profile{Task: fmt.Sprintf("%s of %d", r.task, r.count), What: "CPU"}
	if kind == "allocs" {
		args, taken.What = append(args, "-sample_index=alloc_space"), "memory allocated"
	}
	top, err := s.run(exec.CommandContext(ctx, "go", append(args, filepath.Join(s.dir, r.side), file+"."+kind)...))
	if err != nil {
		return profile{}, err
	}
	// What stands above the table tells of this machine and this minute.
	_, table, _ := strings.Cut(string(top), "      flat ")
	taken.Top = strings.TrimRight("      flat "+table, "\n")
	return taken, nil
}
