package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anykind/anykind/dev/internal/page"
)

// trialStep is a task of a new user: a script in a new module with files. It must print want.
type trialStep struct {
	name, page string
	files      map[string]string // by name: a path of the repository, with #N for the Nth Go program of a page
	script     string
	want       string
}

// trialSteps follow each other: a later step has the programs and the compiled packages of earlier ones.
var trialSteps = []trialStep{
	{
		"list the objects of a built-in kind", "../README.md", map[string]string{"main.go": "README.md#1"}, `
go get github.com/anykind/anykind@VERSION
go install github.com/anykind/anykind/apitest/cmd/apitest@VERSION
go mod tidy
go build -o program .
apitest -controllers exec -- ./program`, "web",
	},
	{
		"create, patch and cache a custom resource", "PORTED.md#kube-rs", map[string]string{"main.go": "docs/PORTED.md#7"}, `
go get github.com/anykind/anykind@VERSION
go mod tidy
go build -o program .
apitest exec -- ./program`, "in the store: true patched of 2",
	},
	{
		"a controller with its test", "TESTING.md", map[string]string{
			"greeter.go": "apitest/examples/greeter/greeter.go", "greeter_test.go": "apitest/examples/greeter/greeter_test.go",
		}, `
go get github.com/anykind/anykind/apitest@VERSION
go mod tidy
go test .`, "ok",
	},
	{
		"a command of anyctl", "CLI.md", nil, `
go install github.com/anykind/anykind/cli/cmd/anyctl@VERSION
apitest -controllers exec -- anyctl get deploy`, "canary",
	},
	{
		"a program of client-go over a connection", "MIGRATION.md#clients-of-client-go-over-a-connection",
		map[string]string{"main.go": "dev/release/testdata/clientset.go.txt"}, `
go get github.com/anykind/anykind/compat@VERSION
go mod tidy
go build -o program .
apitest -controllers exec -- ./program`, "web",
	},
	{
		"a plan that fails in CI", "PLAN.md", map[string]string{"shop.yaml": "dev/release/testdata/broken.yaml"}, `
go install github.com/anykind/anykind/apitest/cel/cmd/anyctl-copy@VERSION
! apitest -controllers exec -- anyctl plan -f shop.yaml`, "rejected",
	},
}

// try runs the steps with an empty build cache and writes their times to docs/START.md.
func (u *user) try(ctx context.Context, root string) error {
	dir := filepath.Join(u.dir, "trial")
	env := append(u.proxy.env, "GOFLAGS=-modcacherw", "GOCACHE="+filepath.Join(dir, "cache"), "GOBIN="+filepath.Join(dir, "bin"),
		"PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	table := "| step | page | commands | time |\n|---|---|---|---|\n"
	for i, step := range trialSteps {
		folder := filepath.Join(dir, fmt.Sprint("step", i+1))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		for name, source := range step.files {
			text, err := u.trialFile(source)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
				return err
			}
		}
		script := "set -e\ngo mod init example.com/trial" + strings.ReplaceAll(step.script, "VERSION", u.version)
		began := time.Now()
		printed, err := output(ctx, command{dir: folder, env: env, name: "sh", args: []string{"-c", script + "\n"}})
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if !strings.Contains(printed, step.want) {
			return fmt.Errorf("%s: printed no %q:\n%s", step.name, step.want, printed)
		}
		took := time.Since(began).Round(time.Second)
		fmt.Printf("release: %s (%s)\n%s\n", step.name, took, printed)
		table += fmt.Sprintf("| %s | [%s](%s) | %d | %s |\n", step.name, strings.TrimPrefix(step.page, "../"), step.page, strings.Count(script, "\n"), took)
	}
	return page.Write(filepath.Join(root, "docs", "START.md"), "<!-- trial: written by make trial -->\n", "<!-- trial: end -->", table)
}

// trialFile returns a file of the released checkout, or a program of a page for "PAGE#N".
func (u *user) trialFile(source string) ([]byte, error) {
	path, number, isProgram := strings.Cut(source, "#")
	text, err := os.ReadFile(filepath.Join(u.clone, path))
	if err != nil || !isProgram {
		return text, err
	}
	n := 0
	for _, snippet := range snippets(string(text)) {
		if strings.HasPrefix(snippet, "package ") {
			if n++; fmt.Sprint(n) == number {
				return []byte(snippet), nil
			}
		}
	}
	return nil, fmt.Errorf("%s has %d programs", path, n)
}
