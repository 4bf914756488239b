package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// outcome is the result of the tests of a mutant.
type outcome string

const (
	killed   outcome = "killed"
	survived outcome = "survived"
	timedOut outcome = "timed out"
	invalid  outcome = "did not compile"
)

// minTimeout bounds the tests of a mutant from below: the machine may be slower than in the first run.
const minTimeout = 20 * time.Second

// runner runs the tests of a package.
type runner struct {
	packages []string
	sources  []string // absolute
	skip     string
	covered  coverage
	timeout  time.Duration // of the tests of a mutant
	duration time.Duration // of the tests without a change
	folder   string        // for files of this run
}

// newRunner runs the tests without a change.
func newRunner(ctx context.Context, pkg, skip string) (*runner, error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,GoFiles", pkg).Output()
	if err != nil {
		return nil, explain("list "+pkg, text, err)
	}
	var listed struct {
		Dir, ImportPath string
		GoFiles         []string
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("list %s: want one package: %w", pkg, err)
	}
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	r := &runner{packages: []string{listed.ImportPath}, skip: skip, folder: folder}
	for _, name := range listed.GoFiles {
		r.sources = append(r.sources, filepath.Join(listed.Dir, name))
	}
	profile := filepath.Join(folder, "profile")
	if text, err := r.goTest(ctx, "-coverprofile", profile); err != nil {
		return nil, explain("tests without a change", text, err)
	}
	coverText, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	if r.covered, err = readCoverage(string(coverText)); err != nil {
		return nil, err
	}
	began := time.Now() // the packages are compiled by now
	text, err = r.goTest(ctx)
	r.duration = time.Since(began)
	r.timeout = max(minTimeout, 5*r.duration)
	return r, explain("tests without a change", text, err)
}

// explain adds the output of a command to its error.
func explain(operation string, output []byte, err error) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		output = append(output, exit.Stderr...)
	}
	return fmt.Errorf("%s: %w\n%s", operation, err, output)
}

// goTest runs the tests with flags of go test. A first failure ends them.
func (r *runner) goTest(ctx context.Context, flags ...string) ([]byte, error) {
	args := append([]string{"test", "-count=1", "-failfast", "-vet=off", "-skip", r.skip}, flags...)
	return exec.CommandContext(ctx, "go", append(args, r.packages...)...).CombinedOutput()
}

// mutants returns the mutants of covered code and the number of mutants of uncovered code.
func (r *runner) mutants() (candidates []mutant, uncovered int, err error) {
	for _, name := range r.sources {
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, 0, err
		}
		all, err := mutantsOf(name, source)
		if err != nil {
			return nil, 0, err
		}
		for _, m := range all {
			if r.covered.covers(m) {
				candidates = append(candidates, m)
			} else {
				uncovered++
			}
		}
	}
	return candidates, uncovered, nil
}

// test runs the tests of a mutant.
func (r *runner) test(ctx context.Context, m mutant) (outcome, error) {
	changed := filepath.Join(r.folder, "changed.go")
	overlay := filepath.Join(r.folder, "overlay.json")
	if err := os.WriteFile(changed, m.content(), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", err
	}
	text, err := r.goTest(ctx, "-overlay", overlay, "-timeout", r.timeout.String())
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	var exit *exec.ExitError
	switch output := string(text); {
	case err == nil:
		return survived, nil
	case !errors.As(err, &exit):
		return "", err
	case strings.Contains(output, "[build failed]"), strings.Contains(output, "[setup failed]"):
		return invalid, nil
	case strings.Contains(output, "--- FAIL: "): // a later test may have timed out
		return killed, nil
	case strings.Contains(output, "panic: test timed out after"), strings.Contains(output, "Test killed with quit"):
		return timedOut, nil
	}
	return killed, nil
}
