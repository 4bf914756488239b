//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// outcome is the result for an object.
type outcome int

const (
	notJudged outcome = iota // also without a schema, and for a schema that a validator cannot read
	valid
	invalid
)

// validator is a program that validates files.
type validator struct {
	name  string
	path  string
	args  []string
	parse func(output, errs []byte) (map[string]outcome, error) // by the file's path
}

// validators returns the programs with their arguments for the cases in dir.
func validators(dir, bin string) []*validator {
	cases := filepath.Join(dir, "cases")
	return []*validator{
		{
			"anyctl", filepath.Join(bin, "anyctl"),
			[]string{"validate", "-f", cases, "--schemas", filepath.Join(dir, "schemas"), "-o", "json"}, parseAnyctl,
		},
		{
			"kubeconform v0.8.0", filepath.Join(bin, "kubeconform-v0.8.0"),
			[]string{
				"-strict", "-verbose", "-output", "json", "-schema-location",
				filepath.Join(dir, "jsonschema", "{{ .Group }}_{{ .ResourceAPIVersion }}_{{ .ResourceKind }}.json"), cases,
			}, parseKubeconform,
		},
		{
			"kubectl-validate v0.0.4", filepath.Join(bin, "kubectl-validate-v0.0.4"),
			[]string{"--local-schemas", filepath.Join(dir, "openapi"), "-o", "json", cases}, parseKubectlValidate,
		},
	}
}

// runResult is the result of a run.
type runResult struct {
	outcomes map[string]outcome // by file name
	elapsed  time.Duration
	cpu      time.Duration
	memory   int64 // peak RSS in bytes
}

// run validates all files. Invalid objects make the programs exit with a code.
func (v *validator) run() (*runResult, error) {
	command := exec.Command(v.path, v.args...) //nolint:gosec,noctx // the caller's programs, until they end
	command.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	var output, errs bytes.Buffer
	command.Stdout = &output
	command.Stderr = &errs
	began := time.Now()
	err := command.Run()
	elapsed := time.Since(began)
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return nil, err
	}
	byPath, err := v.parse(output.Bytes(), errs.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%w: %.2000s", err, errs.String())
	}
	result := &runResult{outcomes: map[string]outcome{}, elapsed: elapsed, cpu: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}
	if usage, isUsage := command.ProcessState.SysUsage().(*syscall.Rusage); isUsage {
		result.memory = usage.Maxrss << 10
	}
	for path, one := range byPath {
		result.outcomes[filepath.Base(path)] = one
	}
	return result, nil
}

// parseAnyctl reads the findings, and errors of files without a kind. Files without a finding are valid: newColumn adds them.
func parseAnyctl(output, errs []byte) (map[string]outcome, error) {
	var report struct {
		Findings []struct{ File, Level, Keyword string }
	}
	if err := json.Unmarshal(output, &report); err != nil {
		return nil, err
	}
	outcomes := map[string]outcome{}
	for _, finding := range report.Findings {
		switch {
		case finding.Keyword == "no-schema":
			outcomes[finding.File] = notJudged
		case finding.Level == "error":
			outcomes[finding.File] = invalid
		}
	}
	for line := range strings.Lines(string(errs)) {
		if file, _, isFile := strings.Cut(line, ": document "); isFile {
			outcomes[strings.TrimPrefix(file, "error: ")] = invalid
		}
	}
	return outcomes, nil
}

func parseKubeconform(output, _ []byte) (map[string]outcome, error) {
	var report struct {
		Resources []struct{ Filename, Status, Msg string }
	}
	if err := json.Unmarshal(output, &report); err != nil {
		return nil, err
	}
	outcomes := map[string]outcome{}
	for _, resource := range report.Resources {
		outcomes[resource.Filename] = map[string]outcome{"statusValid": valid, "statusInvalid": invalid}[resource.Status]
		if strings.HasPrefix(resource.Msg, "error while parsing") { // such as an object without a kind
			outcomes[resource.Filename] = invalid
		}
	}
	return outcomes, nil
}

func parseKubectlValidate(output, _ []byte) (map[string]outcome, error) {
	var files map[string][]struct{ Status, Message string }
	if err := json.Unmarshal(output, &files); err != nil {
		return nil, err
	}
	outcomes := map[string]outcome{}
	for file, statuses := range files {
		outcomes[file] = valid
		for _, status := range statuses {
			if status.Status != "Success" {
				outcomes[file] = invalid
			}
			if strings.Contains(status.Message, "failed to retrieve validator") || strings.Contains(status.Message, "openapi") {
				outcomes[file] = notJudged
			}
		}
	}
	return outcomes, nil
}
