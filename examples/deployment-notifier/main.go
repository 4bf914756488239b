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
)

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: deployment-notifier") }
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Println("waiting for DeploymentNotifiers with a name in spec.deployment, and for new images of the Deployments of these names")
	return notifier.Run(ctx, client, os.Stdout)
}
