// Command autodetect finds a cluster by itself (a kubeconfig, the pod it runs in, a kubectl proxy), lists the pods of
// the current namespace, and then shows what changes until it is interrupted. With -v it shows each request; with
// -kubectl every request goes through the user's own kubectl.
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

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func main() {
	verbose := flag.Bool("v", false, "show each request")
	kubectl := flag.Bool("kubectl", false, "make every request through kubectl")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var opts transport.Options
	if *verbose {
		opts.Observe = func(_ context.Context, a transport.Attempt) { show(os.Stderr, a) }
	}
	conn, err := connect(ctx, *kubectl, opts)
	if err == nil {
		defer conn.Close()
		err = pods(ctx, dynamic.New(conn, nil), os.Stdout)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Print(err)
	}
}

// connect finds the cluster.
func connect(ctx context.Context, kubectl bool, opts transport.Options) (*transport.Conn, error) {
	if kubectl {
		return transport.Kubectl(ctx, &transport.KubectlOptions{Options: opts})
	}
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return nil, err
	}
	opts.Namespace = cfg.Namespace
	cfg.Options = opts
	return transport.Open(cfg)
}

// show is one line for each request, without anything secret.
func show(out io.Writer, a transport.Attempt) {
	fmt.Fprintf(out, "%s %s (%s %s): %d in %s\n", a.Method, a.URL, a.Verb, a.Resource, a.Code, a.Duration.Round(time.Millisecond))
}

// pods lists the pods and goes on to watch them from the moment of the list.
func pods(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		return err
	}
	now, err := pods.ListPage(ctx, nil)
	if err != nil {
		return err
	}
	for _, pod := range now.Items {
		if err := line(out, "", pod); err != nil {
			return err
		}
	}
	for event, err := range pods.Watch(ctx, &metav1.ListOptions{ResourceVersion: now.ResourceVersion}) {
		if err != nil {
			return err
		}
		if err := line(out, string(event.Type), event.Object); err != nil {
			return err
		}
	}
	return nil
}

func line(out io.Writer, change string, pod *unstructured.Object) error {
	phase, _, err := unstructured.Get[string](pod, "status", "phase")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%-8s %s/%s %s\n", change, pod.GetNamespace(), pod.GetName(), phase)
	return err
}
