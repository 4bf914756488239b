// Command check is the inner loop of a change. It checks the format of changed files, and the types of the changed packages, of all
// their importers in every module and of their tests. It runs the unit tests of the changed packages, of their direct importers in
// the same module except for programs, and of internal/architecture.
//
//	go run ./dev/check [-base main]
//
// A change is a difference between the working tree and the merge base with the branch -base, untracked files included. make test
// has the tests of all importers and the tests on a cluster.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// architecture has the tests of names, imports and documents in all modules; it runs with every change.
const architecture = "github.com/anykind/anykind/internal/architecture"

// batch is the number of packages of a go test: enough to use two processors, few enough to end soon after the budget.
const batch = 4

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	base := flags.String("base", "main", "the branch to compare with")
	budget := flags.Duration("budget", 35*time.Second, "the time after which no more tests of importers begin; 0 means no limit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	begin := time.Now()
	top, err := output(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	r := &repository{root: strings.TrimSpace(top)}
	files, err := r.changedFiles(ctx, *base)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		fmt.Fprintf(out, "check: no file differs from %s\n", *base)
		return nil
	}
	if err := r.checkFormat(ctx, files); err != nil {
		return err
	}
	if err := r.readPackages(ctx); err != nil {
		return err
	}
	changed := r.changedPackages(files)
	changed[architecture] = true
	importers := r.importers(changed)
	fmt.Fprintf(out, "check: types of %d packages\n", len(importers))
	if err := r.checkTypes(ctx, r.withTests(importers), importers); err != nil {
		return err
	}
	tests := r.tested(changed)
	fmt.Fprintf(out, "check: tests of %d packages\n", len(tests))
	if err := r.test(ctx, out, slices.Sorted(maps.Keys(changed))); err != nil {
		return err
	}
	for tested := range slices.Chunk(r.byDepth(tests, changed), batch) {
		if *budget > 0 && time.Since(begin) > *budget {
			fmt.Fprintf(out, "check: no time for tests of %s\n", strings.Join(tested, ", "))
			continue
		}
		// The findings of vet do not depend on the imports of a package.
		if err := r.test(ctx, out, append([]string{"-vet=off"}, tested...)); err != nil {
			return err
		}
	}
	return nil
}

// test runs go test with arguments, the packages of any modules among them, and prints the lines of failures.
func (r *repository) test(ctx context.Context, out io.Writer, args []string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test"}, args...)...)
	cmd.Dir = r.root
	printed, err := cmd.CombinedOutput()
	for line := range bytes.Lines(printed) {
		if isQuiet := bytes.HasPrefix(line, []byte("ok ")) || bytes.HasPrefix(line, []byte("? ")); !isQuiet {
			_, _ = out.Write(line)
		}
	}
	if err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}

// checkFormat returns an error with the unformatted files.
func (r *repository) checkFormat(ctx context.Context, files []string) error {
	source := slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		_, err := os.Stat(filepath.Join(r.root, file))
		return err != nil || !strings.HasSuffix(file, ".go")
	})
	if len(source) == 0 {
		return nil
	}
	unformatted, err := output(ctx, r.root, "gofmt", append([]string{"-l"}, source...)...)
	if err == nil && unformatted != "" {
		err = fmt.Errorf("not formatted (run gofmt -w):\n%s", unformatted)
	}
	return err
}

// output runs a command in a folder and returns its standard output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, args[0], err, stderr.Bytes())
	}
	return string(stdout), nil
}
