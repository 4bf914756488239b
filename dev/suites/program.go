package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// testProgram is the compiled test program of a suite.
type testProgram struct {
	suite   *suite
	path    string
	dir     string // the package's folder, the working directory of its tests
	assets  string
	modules string
}

// stopGrace limits the time for an interrupted test program to stop its API server.
const stopGrace = 30 * time.Second

// maxRepeated limits the failed Go tests to run again. More failures are no accident.
const maxRepeated = 5

// results runs the program. Up to maxRepeated failed Go tests run again once, alone, because the machine may have been slow for a
// moment; ginkgo runs its specs again itself.
func (p *testProgram) results(ctx context.Context) ([]result, error) {
	results, err := p.attempt(ctx, p.suite.run, true)
	if err != nil {
		return nil, err
	}
	repeated := 0
	for i, one := range results {
		if one.outcome != failed || p.isSpec(one) {
			continue
		}
		if repeated++; repeated > maxRepeated {
			break
		}
		again, err := p.attempt(ctx, exactly(one.name), false)
		if err != nil {
			return nil, err
		}
		for _, second := range again {
			if second.name == one.name && second.outcome == passed {
				results[i].outcome = passed
				results[i].repeats = 1
			}
		}
	}
	return results, nil
}

// exactly returns the -test.run pattern of one test or subtest.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// isSpec reports whether a result is a spec's. Names of Go tests have no spaces.
func (p *testProgram) isSpec(r result) bool {
	return p.suite.specs != "" && strings.Contains(r.name, " ")
}

// attempt runs the tests matched by pattern. It returns the results of Go tests without subtests and, if withSpecs, of ginkgo's
// specs.
func (p *testProgram) attempt(ctx context.Context, pattern string, withSpecs bool) ([]result, error) {
	scratch, err := os.MkdirTemp("", "anykind-suite-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	specReport := filepath.Join(scratch, "specs.json")
	args := []string{"-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + (p.suite.timeout + time.Minute).String()}
	if pattern != "" {
		args = append(args, "-test.run="+pattern)
	}
	if p.suite.skip != "" {
		args = append(args, "-test.skip="+p.suite.skip)
	}
	withSpecs = withSpecs && p.suite.specs != ""
	if withSpecs {
		args = append(args, "-ginkgo.no-color", "-ginkgo.flake-attempts=2", "-ginkgo.timeout="+p.suite.timeout.String(),
			"-ginkgo.json-report="+specReport, "-ginkgo.focus="+p.suite.focus, "-ginkgo.skip="+p.suite.unfocused)
	}
	command := exec.CommandContext(ctx, p.path, args...)
	command.Dir = p.dir
	command.Env = p.environment(scratch)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = stopGrace
	events, output, runErr := testEvents(ctx, command)
	results := goResults(events)
	if withSpecs {
		specs, err := specResults(specReport, p.suite.focus+p.suite.unfocused != "")
		if err != nil {
			return nil, errors.Join(err, runErr, errors.New(lastLines(output)))
		}
		results = slices.DeleteFunc(results, func(r result) bool { return r.name == p.suite.specs })
		results = append(results, specs...)
	}
	if runErr != nil && !slices.ContainsFunc(results, func(r result) bool { return r.outcome == failed }) {
		return nil, fmt.Errorf("%w without a failed test: %s", runErr, lastLines(output))
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("no test ran: %s", lastLines(output))
	}
	return results, nil
}

// environment returns the variables of the test program: the sandbox's programs for envtest, and no cluster of the user.
func (p *testProgram) environment(scratch string) []string {
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return name == "KUBECONFIG" || name == "USE_EXISTING_CLUSTER" || strings.HasPrefix(name, "ANYKIND_")
	})
	return append(append(env,
		"KUBEBUILDER_ASSETS="+p.assets,
		"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=3m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=3m",
		"PATH="+p.assets+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"HOME="+scratch, "TMPDIR="+scratch, "PWD="+p.dir,
		"TEST_SRCDIR="+p.modules, "TEST_WORKSPACE=.", // has the certificate of the test server, compiled with -trimpath
	), p.suite.env...)
}

// testEvent is a line of go test -json.
type testEvent struct{ Action, Test, Output string }

// testEvents runs a test program and returns the events of go test -json, and the end of its output.
func testEvents(ctx context.Context, command *exec.Cmd) (events []testEvent, output []byte, err error) {
	convert := exec.CommandContext(context.WithoutCancel(ctx), "go", "tool", "test2json", "-t")
	reader, writer := io.Pipe()
	var text tail
	command.Stdout = io.MultiWriter(writer, &text)
	command.Stderr = &text
	convert.Stdin = reader
	lines, err := convert.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := convert.Start(); err != nil {
		return nil, nil, err
	}
	done := make(chan error, 1)
	go func() {
		done <- command.Run()
		_ = writer.Close()
	}()
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var event testEvent
		if err := json.Unmarshal(scanner.Bytes(), &event); err == nil {
			events = append(events, event)
		}
	}
	converted := errors.Join(scanner.Err(), convert.Wait())
	_ = reader.Close()
	err = <-done
	return events, text.Bytes(), errors.Join(err, converted)
}

// tail keeps the end of the bytes written by several goroutines.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const limit = 64 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - limit; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// Bytes returns the end of the text. Writing must have ended.
func (t *tail) Bytes() []byte { return t.text }

// goResults returns the results of the tests without subtests.
func goResults(events []testEvent) []result {
	outcomes := map[string]outcome{"pass": passed, "fail": failed, "skip": skipped}
	messages := map[string][]byte{}
	parents := map[string]bool{}
	var results []result
	for _, event := range events {
		if event.Action == "output" && event.Test != "" {
			messages[event.Test] = append(messages[event.Test], event.Output...)
		}
		o, ended := outcomes[event.Action]
		if !ended || event.Test == "" {
			continue
		}
		for parent, rest := "", event.Test; ; {
			first, remaining, nested := strings.Cut(rest, "/")
			if !nested {
				break
			}
			parent = parent + first
			rest = remaining
			parents[parent] = true
			parent += "/"
		}
		results = append(results, result{name: event.Test, outcome: o, message: lastLines(messages[event.Test])})
	}
	// A failed test with passed subtests is a failure of its own.
	failedBelow := func(name string) bool {
		return slices.ContainsFunc(results, func(r result) bool {
			return r.outcome == failed && strings.HasPrefix(r.name, name+"/")
		})
	}
	return slices.DeleteFunc(results, func(r result) bool {
		return parents[r.name] && (r.outcome != failed || failedBelow(r.name))
	})
}
