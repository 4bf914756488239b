// Command suites runs the test suites of client-go, controller-runtime and further projects on top of anykind, and prints a table
// of the results.
//
//	go run -C dev/suites . [-docs FOLDER] [-part ci] [SUITE...]
//
// A suite's module is copied from Go's module cache into the user's cache folder, and its constructors are patched there: a
// rest.Config with requests through a connection of anykind, its RESTMapper, the adapters of module compat. The rest of the suite
// is unchanged. versions.txt has the modules' versions; exclusions.txt lists the tests with permission to fail, with reasons.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("suites", flag.ContinueOnError)
	docs := flags.String("docs", "", "write COMPATIBILITY.md to `folder`, and the table of unit tests on fakes to its APITEST.md")
	part := flags.String("part", "", "ci runs the suites that run with this module's tests; empty runs all")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	chosen, err := choose(*part == "ci", flags.Args())
	if err != nil {
		return err
	}
	exclusions, err := parseExclusions()
	if err != nil {
		return err
	}
	r, err := newRunner(ctx, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
	if err != nil {
		return err
	}
	var rows []row
	var wrong error
	for _, s := range chosen {
		report, err := r.run(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			wrong = errors.Join(wrong, err)
			continue
		}
		v := summarize(report, exclusions)
		rows = append(rows, row{report, v})
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, v)
		for _, failure := range v.failures {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %s", s.name, failure))
		}
	}
	printTable(os.Stdout, rows)
	if wrong == nil && *docs != "" {
		wrong = writeDocuments(*docs, rows)
	}
	return wrong
}

// writeDocuments writes the results of all suites.
func writeDocuments(folder string, rows []row) error {
	onFakes := func(r row) bool { return r.report.suite.fakes }
	compatibility := slices.DeleteFunc(slices.Clone(rows), onFakes)
	if err := os.WriteFile(filepath.Join(folder, page), []byte(document(compatibility)), 0o600); err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !onFakes(r) })
	return replaceTable(filepath.Join(folder, "APITEST.md"), fakeTable(rest))
}

// replaceTable replaces the text between the marks of the table.
func replaceTable(path, table string) error {
	const begin, end = "<!-- unit tests on fakes: begin -->\n", "<!-- unit tests on fakes: end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no marks of the table", path)
	}
	return os.WriteFile(path, []byte(before+begin+table+end+after), 0o600)
}

// choose returns the suites with the given names or below them (NAME/…); without names, all suites.
func choose(ci bool, names []string) ([]*suite, error) {
	all := suites()
	if ci {
		all = slices.DeleteFunc(all, func(s *suite) bool { return !s.ci })
	}
	if len(names) == 0 {
		return all, nil
	}
	var chosen []*suite
	for _, name := range names {
		known := false
		for _, s := range all {
			if s.name != name && !strings.HasPrefix(s.name, name+"/") {
				continue
			}
			if known = true; !slices.Contains(chosen, s) {
				chosen = append(chosen, s)
			}
		}
		if !known {
			return nil, fmt.Errorf("unknown suite %q", name)
		}
	}
	return chosen, nil
}
