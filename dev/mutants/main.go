// Command mutants measures the tests of a package. It changes a single expression or statement at a time, runs the tests of the
// package, and lists the changes without a failing test.
//
//	mutants [-n 40] [-seed 1] [-skip regexp] PACKAGE
//	mutants -defects [-skip regexp] [NAME...]
//
// With -defects it runs the tests of the chosen changes of defects.txt, and fails if none of the tests of a change fails.
//
// Mutants are drawn from covered lines, compiled with go test -overlay, and never written to the checkout.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	number := flags.Int("n", 40, "run so many mutants; 0 runs all")
	seed := flags.Uint64("seed", 1, "draws the sample")
	skip := flags.String("skip", "", "a regexp of tests that do not run")
	defects := flags.Bool("defects", false, "run the changes of defects.txt")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *defects {
		return runDefects(ctx, out, ".", *skip, flags.Args())
	}
	if flags.NArg() != 1 {
		return errors.New("want one package, such as ./dynamic")
	}
	tests, err := newRunner(ctx, flags.Arg(0), *skip)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tests.folder) }()
	candidates, uncovered, err := tests.mutants()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d mutants on covered lines, %d on others; the tests take %s\n",
		tests.packages[0], len(candidates), uncovered, tests.duration.Round(100*time.Millisecond))
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(candidates), func(i, j int) {
		candidates[i], candidates[j] = candidates[j], candidates[i]
	})
	if *number == 0 {
		*number = len(candidates)
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	counts := map[outcome]int{}
	for _, m := range candidates {
		if counts[killed]+counts[survived]+counts[timedOut] == *number {
			break
		}
		var result outcome
		if result, err = tests.test(ctx, m); err != nil {
			break // the counts show the progress
		}
		if counts[result]++; result == survived {
			fmt.Fprintln(out, strings.TrimPrefix(m.String(), here+string(filepath.Separator)))
		}
	}
	fmt.Fprintf(out, "%s: %d killed, %d survived, %d timed out, %d did not compile\n",
		tests.packages[0], counts[killed], counts[survived], counts[timedOut], counts[invalid])
	return err
}
