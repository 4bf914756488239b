// Command cross checks the types of modules and of their dependencies for several platforms. The workspace selects the versions of
// the dependencies.
//
//	go run ./dev/cross -platforms darwin/arm64,windows/amd64 . cli
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/anykind/anykind/dev/internal/typecheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	platforms := flag.String("platforms", "darwin/arm64,windows/amd64", "platforms, each as GOOS/GOARCH")
	flag.Parse()
	var patterns []string
	for _, folder := range flag.Args() {
		patterns = append(patterns, "./"+folder+"/...")
	}
	for platform := range strings.SplitSeq(*platforms, ",") {
		began := time.Now()
		goos, goarch, _ := strings.Cut(platform, "/")
		packages, err := typecheck.New(typecheck.Platform{GOOS: goos, GOARCH: goarch}).Check(ctx, ".", nil, patterns...)
		if err != nil {
			fmt.Fprintf(os.Stderr, "cross: %s: %v\n", platform, err)
			stop()
			os.Exit(1)
		}
		fmt.Printf("cross: ok %s: %d packages (%s)\n", platform, packages, time.Since(began).Round(time.Second))
	}
}
