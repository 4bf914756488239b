// Command deployment-notifier runs the controller of package notifier: it registers the kind DeploymentNotifier and prints
// changes of the images of Deployments.
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
	"github.com/anykind/anykind/examples/deployment-notifier/notifier"
	"github.com/anykind/anykind/transport"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: deployment-notifier") }
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
	return notifier.Run(ctx, client, os.Stdout)
}
