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

// hidden are frames of every profile: our own loop and the scheduler.
const hidden = `-hide=^(main\.|runtime\.(main|mcall|goexit|systemstack|gosched.*|schedule)$|.*/measure\.)`

// profile is a CPU or allocation profile of our run.
type profile struct {
	Task, Kind, What, Top string
}

// profileMissed adds a missing profile to the results for each of our runs that missed an aim.
func profileMissed(ctx context.Context, opts *options, server *server, sides *sides, missed []result, kept *results) error {
	wanted := func(p profile) bool {
		return slices.ContainsFunc(missed, func(r result) bool {
			kind, ok := profileOf(r.ours)
			return ok && r.missed() && p.Task == r.ours.task && p.Kind == kind
		})
	}
	kept.Profiles = slices.DeleteFunc(kept.Profiles, func(p profile) bool { return !wanted(p) })
	for _, r := range missed {
		kind, ok := profileOf(r.ours)
		// Lists of different lengths have the same profile.
		isKept := func(p profile) bool { return p.Task == r.ours.task && p.Kind == kind }
		if !r.missed() || !ok || slices.ContainsFunc(kept.Profiles, isKept) {
			continue
		}
		fmt.Fprintf(opts.progress, "compare: %s missed its aim: profiling %s of %d\n", r.name, r.ours.task, r.ours.count)
		taken, err := sides.profile(ctx, opts, server, r.ours.run, kind)
		if err != nil {
			return err
		}
		kept.Profiles = append(kept.Profiles, taken)
	}
	return kept.save()
}

// profileOf returns the kind of profile for a figure. Processes of a few milliseconds have none.
func profileOf(c cost) (kind string, ok bool) {
	switch {
	case c.task == "program" || c.task == "first" || strings.HasPrefix(c.task, "cli-") || c.figure == "heap" || c.figure == "held" || strings.HasSuffix(c.figure, "peak") || strings.HasPrefix(c.figure, "server-"), strings.HasSuffix(c.figure, "rss"):
		return "", false
	case strings.HasSuffix(c.figure, "alloc"), strings.HasSuffix(c.figure, "allocs"):
		return "allocs", true
	default:
		return "cpu", true
	}
}

func (s *sides) profile(ctx context.Context, opts *options, server *server, r run, kind string) (profile, error) {
	at, err := server.prepare(ctx, r)
	if err != nil {
		return profile{}, err
	}
	file := filepath.Join(s.dir, fmt.Sprintf("%s-%d", r.task, r.count))
	if _, err := s.task(ctx, server, r, at, "-profile", file, "-profileFor", opts.profileFor.String()); err != nil {
		return profile{}, err
	}
	args := []string{"tool", "pprof", "-top", "-cum", "-nodecount=30", hidden}
	taken := profile{Task: r.task, Kind: kind, What: fmt.Sprintf("CPU of anykind's task %s (%d)", r.task, r.count)}
	if kind == "allocs" {
		args = append(args, "-sample_index=alloc_space")
		taken.What = fmt.Sprintf("Memory that anykind's task %s (%d) allocates", r.task, r.count)
	}
	top, err := s.run(exec.CommandContext(ctx, "go", append(args, filepath.Join(s.dir, r.side), file+"."+kind)...))
	if err != nil {
		return profile{}, err
	}
	// The lines above the table have the machine and the time.
	_, table, _ := strings.Cut(string(top), "      flat ")
	taken.Top = strings.TrimRight("      flat "+table, "\n")
	return taken, nil
}
