// Command peers plays known bugs of Kubernetes' caches with client-go's informers, controller-runtime's cache, and this repository's
// cache and Follow, in several versions.
//
//	peers [-issue 59848] [-versions 'v0.17.0,v0.25.2'] [-docs ../../docs/KNOWN_BUGS.md]
//
// Observers are processes: each has its own version of the libraries. Their packages are clientgo, controllerruntime and anykind. Each
// trial has a scripted API server with a watch cache. The watch cache may be behind, forgetful or wrong. The properties of module
// dev/history check the events delivered by an observer. With -docs the results are written to results.txt and to the page. The results
// of a choice of versions replace all earlier results.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	issue := flag.Int("issue", 0, "the issue to play, 0 for all")
	versions := flag.String("versions", "", "the versions to play, all by default")
	docs := flag.String("docs", "", "the page to write the table to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *issue, *versions, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, issue int, versions, docs string) error {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	observers, err := buildAll(ctx, dir, versions)
	if err != nil {
		return err
	}
	all, err := playAll(ctx, observers, issue)
	if err != nil {
		return err
	}
	for _, r := range all {
		fmt.Println(r)
	}
	if docs == "" {
		return nil
	}
	return write(all, docs)
}
