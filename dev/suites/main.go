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
	docs := flags.String("docs", "", "write COMPATIBILITY.md to `folder`")
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
	exclusions, err := parseExclusions(exclusionList)
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
		wrong = os.WriteFile(filepath.Join(*docs, page), []byte(document(rows)), 0o600)
	}
	return wrong
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
