// Command autodetect finds a cluster with transport.Load (a kubeconfig, this pod, a kubectl proxy), lists the pods of the current
// namespace and watches them until it is interrupted. With -v it prints each request; with -kubectl it sends every request
// through the user's kubectl.
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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func main() {
	verbose := flag.Bool("v", false, "print each request")
	kubectl := flag.Bool("kubectl", false, "send requests through kubectl")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var opts transport.Options
	if *verbose {
		opts.OnAttempt = func(_ context.Context, attempt transport.Attempt) { printAttempt(os.Stderr, attempt) }
	}
	conn, err := connect(ctx, *kubectl, opts)
	if err == nil {
		defer conn.Close()
		err = listAndWatch(ctx, dynamic.New(conn, nil), os.Stdout)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Print(err)
	}
}

// connect opens a connection to the cluster.
func connect(ctx context.Context, kubectl bool, opts transport.Options) (*transport.Conn, error) {
	if kubectl {
		return transport.OpenKubectl(ctx, &transport.KubectlOptions{Options: opts})
	}
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return nil, err
	}
	opts.Namespace = cfg.Namespace
	cfg.Options = opts
	return transport.Open(cfg)
}

// printAttempt prints a line for an attempt of a request. An Attempt has no secrets.
func printAttempt(out io.Writer, a transport.Attempt) {
	fmt.Fprintf(out, "%s %s (%s %s): %d in %s\n", a.Method, a.URL, a.Verb, a.Resource, a.StatusCode, a.Duration.Round(time.Millisecond))
}

// listAndWatch lists pods and watches them from the list's resourceVersion on. Follow also recovers from errors; see
// examples/reflector.
func listAndWatch(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		return err
	}
	list, err := pods.ListPage(ctx, nil)
	if err != nil {
		return err
	}
	for _, pod := range list.Items {
		if err := printPod(out, "", pod); err != nil {
			return err
		}
	}
	for event, err := range pods.Watch(ctx, &metav1.ListOptions{ResourceVersion: list.ResourceVersion}) {
		if err != nil {
			return err
		}
		if err := printPod(out, string(event.Type), event.Object); err != nil {
			return err
		}
	}
	return nil
}

func printPod(out io.Writer, eventType string, pod *unstructured.Object) error {
	phase, _, err := unstructured.Get[string](pod, "status", "phase")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%-8s %s/%s %s\n", eventType, pod.GetNamespace(), pod.GetName(), phase)
	return err
}
