// Command sharded runs the controller of examples/operator in several processes. These divide the Greetings: start it as often as needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/sharding"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/examples/operator/greeting"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: sharded [-namespace of-leases]") }
	namespace := flag.String("namespace", "default", "the namespace of the group's Leases")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A lost process is replaced after a LeaseDuration. The defaults are more than twice as long.
	err := run(ctx, *namespace, "", &sharding.Options{LeaseDuration: 6 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: time.Second})
	stop()
	if !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// run runs a member. It reconciles the Greetings of a namespace, or for "" of all namespaces.
func run(ctx context.Context, leaseNamespace, namespace string, opts *sharding.Options) error {
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	leases, err := client.Resource(ctx, "leases.coordination.k8s.io")
	if err != nil {
		return err
	}
	group, err := sharding.New(leases.Namespace(leaseNamespace), "greetings", opts)
	if err != nil {
		return err
	}
	return group.Run(ctx, func(ctx context.Context) error {
		log.Print("waiting for Greetings with a name in spec.name")
		return greeting.Run(ctx, client, namespace, &controller.Options{Sharding: group, OnReconcile: func(result controller.ReconcileResult) {
			log.Printf("reconciled %s %s in %s", result.GVK.Kind, result.Key, result.Duration)
		}})
	})
}
