// Command operator runs the controller of package greeting: it registers the kind Greeting and creates a ConfigMap for each
// Greeting. With -lease, several processes elect a leader. -probes serves /healthz and /readyz.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/controller/manager"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/examples/operator/greeting"
)

func main() {
	address := flag.String("probes", "", "the address of the probes")
	namespace := flag.String("lease", "", "the namespace of the Lease")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: operator [-probes ADDRESS] [-lease NAMESPACE]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *address, *namespace)
	stop()
	if !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address, namespace string) error {
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	opts := &manager.Options{LeaseName: "greeting-operator"}
	if namespace != "" {
		leases, err := client.Resource(ctx, "leases")
		if err != nil {
			return err
		}
		opts.Leases = leases.Namespace(namespace)
	}
	m := manager.New(opts)
	if address != "" {
		m.AddServer("probes", manager.HTTPServer(&http.Server{Addr: address, Handler: m.Probes(), ReadHeaderTimeout: time.Minute}, nil))
	}
	log.Print("waiting for Greetings with a name in spec.name")
	m.AddController("greetings", func(ctx context.Context) error {
		return greeting.Run(ctx, client, "", &controller.Options{OnReconcile: report})
	})
	return m.Run(ctx)
}

func report(result controller.ReconcileResult) {
	log.Printf("reconciled %s %s in %s", result.GVK.Kind, result.Key, result.Duration)
}
