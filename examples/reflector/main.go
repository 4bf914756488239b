// Command reflector lists the objects of a resource and watches them, and recovers from lost connections and expired
// resource versions: go run ./examples/reflector configmaps.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/anykind/anykind/dynamic"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: reflector [RESOURCE]") }
	flag.Parse()
	if flag.NArg() > 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, append(flag.Args(), "pods")[0])
	stop()
	if !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name string) error {
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	resource, err := client.Resource(ctx, name)
	if err != nil {
		return err
	}
	fmt.Printf("waiting for %s in the namespace %s\n", resource, client.Conn().Namespace())
	return printChanges(ctx, resource, os.Stdout)
}

// printChanges prints changes until ctx ends.
func printChanges(ctx context.Context, resource *dynamic.Resource, out io.Writer) error {
	opts := &dynamic.FollowOptions{OnInterruption: func(i dynamic.Interruption) {
		if i.Err != nil {
			fmt.Fprintf(out, "interrupted, next attempt in %s: %v\n", i.Delay, i.Err)
		}
	}}
	for change, err := range resource.Follow(ctx, opts) {
		switch {
		case err != nil:
			return err
		case change.Object == nil:
			fmt.Fprintln(out, change.Type)
		default:
			fmt.Fprintln(out, change.Type, change.Object.GetName())
		}
	}
	return nil
}
