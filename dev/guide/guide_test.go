package guide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program is a Go block of a page with a package clause, and the output block after it. A first line "$ NAME ARGUMENTS" of the
// output has the arguments.
type program struct {
	name, source, output string
	args                 []string
}

// isTest reports whether the program is run by go test.
func (p *program) isTest() bool { return strings.Contains(p.source, "\nfunc Test") }

// TestPages_ProgramsPrintTheirOutput builds the programs of docs and runs them in the order of docs/README.md on one cluster.
func TestPages_ProgramsPrintTheirOutput(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" || os.Getenv("ANYKIND_REQUIRE_SANDBOX") == "" {
		t.Skip("no sandbox: run make test MODULES=dev")
	}
	docs, err := filepath.Abs("../../docs")
	require.NoError(t, err)
	dir := filepath.Join(docs, "..", ".bin", "guide")
	require.NoError(t, os.RemoveAll(dir))
	index, err := os.ReadFile(filepath.Join(docs, "README.md"))
	require.NoError(t, err)
	count := 0
	for _, page := range pages(string(index)) {
		text, err := os.ReadFile(filepath.Join(docs, page))
		require.NoError(t, err)
		programs, err := programsOf(page, string(text))
		require.NoError(t, err)
		for _, p := range programs {
			count++
			passed := t.Run(p.name, func(t *testing.T) {
				out := run(t, p, filepath.Join(dir, p.name), docs)
				assert.Regexp(t, pattern(p.output), out)
			})
			require.True(t, passed || count > 1, "the first program creates the objects of the next ones")
		}
	}
	assert.NotZero(t, count)
}

// run builds a program and runs it in the folder docs. It returns the standard output and error.
func run(t *testing.T, p *program, dir, docs string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(t, os.MkdirAll(dir, 0o750))
	file := filepath.Join(dir, "main.go")
	command := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "program"), file)
	if p.isTest() {
		file = filepath.Join(dir, "page_test.go")
		command = exec.CommandContext(ctx, "go", "test", "-c", "-o", filepath.Join(dir, "program"), file)
	}
	require.NoError(t, os.WriteFile(file, []byte(p.source), 0o600))
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	command = exec.CommandContext(ctx, filepath.Join(dir, "program"), p.args...)
	command.Dir = docs
	out, err = command.CombinedOutput()
	if exited := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exited) {
		require.NoError(t, err)
	}
	return string(out)
}

var (
	link  = regexp.MustCompile(`(?m)^(?:\d+\.|-) \[[^]]*\]\(([A-Z]+\.md)\)`)
	block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
)

// pages returns the pages in the lists of an index, in order.
func pages(index string) []string {
	var all []string
	for _, match := range link.FindAllStringSubmatch(index, -1) {
		all = append(all, match[1])
	}
	return all
}

// programsOf returns the programs of a page.
func programsOf(page, text string) ([]*program, error) {
	var all []*program
	blocks := block.FindAllStringSubmatch(text, -1)
	for i, b := range blocks {
		if b[1] != "go" || !strings.HasPrefix(b[2], "package ") {
			continue
		}
		if i+1 == len(blocks) || blocks[i+1][1] != "output" {
			return nil, fmt.Errorf("%s: a program has no output block after it", page)
		}
		name := fmt.Sprintf("%s-%d", strings.ToLower(strings.TrimSuffix(page, ".md")), len(all)+1)
		p := &program{name: name, source: b[2], output: blocks[i+1][2]}
		if line, rest, _ := strings.Cut(p.output, "\n"); strings.HasPrefix(line, "$ ") {
			p.args = strings.Fields(line)[2:]
			p.output = rest
		}
		all = append(all, p)
	}
	return all, nil
}

// pattern returns the regular expression of an output block: "…" matches any text of a line.
func pattern(output string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(output), "…", ".*") + "$"
}

func TestProgramsOf_NeedsOutput(t *testing.T) {
	programs, err := programsOf("START.md", "text\n```go\npackage main\n```\nprints\n```output\n$ pods -n shop\nweb-…\n```\n```go\nx := 1\n```\n")
	require.NoError(t, err)
	require.Equal(t, []*program{{name: "start-1", source: "package main\n", output: "web-…\n", args: []string{"-n", "shop"}}}, programs)
	assert.Regexp(t, pattern(programs[0].output), "web-0\n")
	assert.NotRegexp(t, pattern(programs[0].output), "web-0\nweb-1\n")
	_, err = programsOf("START.md", "```go\npackage main\n```\n")
	require.EqualError(t, err, "START.md: a program has no output block after it")
}

func TestPages_InOrder(t *testing.T) {
	assert.Equal(t, []string{"START.md", "KINDS.md"}, pages("1. [Start](START.md): begin\n2. [Kinds](KINDS.md)\n"))
}
