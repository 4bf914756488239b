package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxTrials is the number of trials at a time. Most of them wait.
const maxTrials = 40

// result is the result of a trial.
type result struct {
	issue            int
	library, version string
	shown            string // the evidence of the bug, "" for none
	err              error  // the scenario was not played to its end
}

// String returns the line of results.txt, with the evidence of the bug.
func (r result) String() string {
	if r.shown == "" {
		return r.line()
	}
	return r.line() + ": " + strings.ReplaceAll(r.shown, registry, "")
}

// line returns the line of results.txt.
func (r result) line() string {
	outcome := "no"
	switch {
	case r.err != nil:
		outcome = "failed"
	case r.shown != "":
		outcome = "yes"
	}
	return fmt.Sprintf("%d %s %s %s", r.issue, r.library, r.version, outcome)
}

// playAll plays an issue, or all for 0, with each observer.
func playAll(ctx context.Context, observers []observer, issue int) (all []result, err error) {
	var mu sync.Mutex
	var failures []error
	var trials sync.WaitGroup
	free := make(chan struct{}, maxTrials)
	for _, s := range scenarios {
		if issue != 0 && s.issue != issue {
			continue
		}
		for _, o := range observers {
			free <- struct{}{}
			trials.Go(func() {
				defer func() { <-free }()
				shown, err := s.playWith(ctx, o)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failures = append(failures, fmt.Errorf("%d with %s %s: %w", s.issue, o.library, o.version, err))
				}
				all = append(all, result{s.issue, o.library, o.version, shown, err})
			})
		}
	}
	trials.Wait()
	slices.SortFunc(all, func(a, b result) int {
		return cmp.Or(cmp.Compare(a.issue, b.issue), cmp.Compare(a.library, b.library), cmp.Compare(a.version, b.version))
	})
	if len(all) == 0 {
		failures = append(failures, fmt.Errorf("there is no scenario of issue %d", issue))
	}
	return all, errors.Join(failures...)
}

// playWith plays a scenario with an observer.
func (s *scenario) playWith(ctx context.Context, o observer) (shown string, err error) {
	t := newTrial(ctx, o, cmp.Or(s.kind, configMaps))
	defer t.close()
	return s.play(t)
}
