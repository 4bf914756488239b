package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// suite is a run of the test suite of an upstream package, in one of its variants.
type suite struct {
	name     string // in the table and in exclusions.txt
	upstream *upstream
	pkg      string // such as ./pkg/client
	specs    string // the Go test that runs ginkgo's specs; "" without specs
	run      string // the Go tests to run, as in -test.run; "" runs all
	skip     string // the Go tests to skip, as in -test.skip
	// focus and unfocused are the specs to run and to leave out, as in -ginkgo.focus and -ginkgo.skip. The remaining specs have no result.
	focus, unfocused string
	env              []string // variables for this variant
	ci               bool     // included in this module's tests
	timeout          time.Duration
	with             string // the tested part of anykind, for the table
	fakes            bool   // unit tests on fakes: any share of them may fail
}

// report has the results of a suite.
type report struct {
	suite   *suite
	results []result
	took    time.Duration
}

// result is the outcome of a test or spec.
type result struct {
	name    string
	outcome outcome
	repeats int    // number of repeated runs after a failure
	message string // of a failure
}

type outcome string

const (
	passed  outcome = "passed"
	failed  outcome = "failed"
	skipped outcome = "skipped" // by upstream
)

// runner runs suites.
type runner struct {
	cache   string // folder of the generated modules
	assets  string // folder with links to etcd, kube-apiserver and kubectl
	modules string // Go's module cache
	logs    func(format string, args ...any)
}

// newRunner builds the missing programs of the sandbox.
func newRunner(ctx context.Context, logs func(format string, args ...any)) (*runner, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find a folder for generated modules: %w", err)
	}
	r := &runner{cache: filepath.Join(user, "anykind", "suites"), logs: logs}
	r.assets = filepath.Join(r.cache, "assets")
	if err := os.MkdirAll(r.cache, 0o755); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "run", "-C", filepath.Join(repository, "sandbox"), ".",
		"build", "--components", "etcd,kube-apiserver,kubectl", "--links", r.assets)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build the sandbox's programs: %w", err)
	}
	modules, err := goCommand(ctx, r.cache, "env", "GOMODCACHE")
	r.modules = strings.TrimSpace(string(modules))
	return r, err
}

// run runs a suite and returns its results. An error means that there are no results, for example after a compile error.
func (r *runner) run(ctx context.Context, s *suite) (*report, error) {
	dir, err := s.upstream.generate(ctx, r.cache)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	program, err := s.compile(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", s.name, err)
	}
	r.logs("%s: compiled in %s", s.name, time.Since(started).Round(time.Second))
	started = time.Now()
	p := &testProgram{suite: s, path: program, dir: filepath.Join(dir, s.pkg), assets: r.assets, modules: r.modules}
	results, err := p.results(ctx)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", s.name, err)
	}
	return &report{suite: s, results: results, took: time.Since(started)}, nil
}

// compile compiles the package's tests. Variants of a package share the compiled test.
func (s *suite) compile(ctx context.Context, dir string) (string, error) {
	name := s.upstream.name + strings.ReplaceAll(strings.TrimPrefix(s.pkg, "."), "/", "-") + ".test"
	program := filepath.Join(dir, ".bin", name)
	if !s.upstream.startsServer {
		_, err := goCommand(ctx, dir, "test", "-c", "-vet=off", fmt.Sprintf("-trimpath=%t", !s.upstream.findsFiles), "-o", program, s.pkg)
		return program, err
	}
	tests, err := readGoMod(ctx, filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	_, err = goCommandWith(ctx, filepath.Join(dir, serverModule), []string{"GOFLAGS=-mod=readonly " + compilerFlags, "CGO_ENABLED=0"},
		"test", "-c", "-vet=off", "-overlay", overlayFile, "-o", program, path.Join(tests.Module.Path, s.pkg))
	return program, err
}

// with returns the results with an outcome.
func (r *report) with(o outcome) (results []result) {
	for _, one := range r.results {
		if one.outcome == o {
			results = append(results, one)
		}
	}
	return results
}
