// Command ours is the smallest program with anykind for listing a resource, or getting an object, by any name accepted by
// kubectl: ours RESOURCE [NAME].
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, resource string, names []string) error {
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return err
	}
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	found, err := client.Resource(ctx, resource)
	if err != nil {
		return err
	}
	for _, name := range names {
		obj, err := found.Get(ctx, name, nil)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, obj.GetKind(), obj.GetName())
	}
	if len(names) > 0 {
		return nil
	}
	for obj, err := range found.List(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, obj.GetKind(), obj.GetName())
	}
	return nil
}
