// Command corpus collects CustomResourceDefinitions and example objects from the Go modules of public projects, for tests and
// benchmarks with realistic objects, and prints their folder.
//
//	go run -C dev/corpus .             # $ANYKIND_CORPUS_CACHE, or anykind/corpus in the user's cache folder
//	go run -C dev/corpus . -summary    # and print what is in it
//
// modules.txt lists the modules with their versions and checksums. A corpus is collected once for each content of this list and
// of this program, in about a minute; later runs print the folder at once. It is not part of this repository: the files belong to
// the projects, under their licences.
//
// The folder has index.json (see [Index]), crds/ with a file for each CustomResourceDefinition, synthetic/ with definitions for
// cases absent in all projects, and objects/ with a file for each object.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("corpus", flag.ContinueOnError)
	summary := flags.Bool("summary", false, "print what the corpus has, by project")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q (want flags only)", flags.Arg(0))
	}
	dir, err := ensure(ctx)
	if err != nil {
		return err
	}
	if *summary {
		index, err := readIndex(dir)
		if err != nil {
			return err
		}
		index.print(os.Stdout)
	}
	fmt.Println(dir)
	return nil
}
