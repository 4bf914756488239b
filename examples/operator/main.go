// Command operator runs the controller of package greeting: it registers the kind Greeting and creates a ConfigMap for each
// Greeting.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/examples/operator/greeting"
	"github.com/anykind/anykind/transport"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: operator") }
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); !errors.Is(err, context.Canceled) {
		log.Print(err)
	}
}

func run(ctx context.Context) error {
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return err
	}
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	return greeting.Run(ctx, client, "", nil)
}
