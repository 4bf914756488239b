// Command deployment-notifier registers the kind DeploymentNotifier and, for each one, tells when the images of the
// Deployment that it names change, until the notifier is deleted.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

//go:embed crd.yaml
var definition []byte

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
	return notify(ctx, client, os.Stdout)
}

// notify watches the notifiers until ctx ends.
func notify(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	registered, err := controller.Register(ctx, client, definition, nil)
	if err != nil {
		return err
	}
	deployments, err := client.Resource(ctx, "deployments")
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	notifiers := map[types.UID]notifier{}
	defer func() {
		for _, each := range notifiers {
			each.stop()
		}
	}()
	for change, err := range registered[0].AllNamespaces().Follow(ctx, nil) {
		if err != nil {
			return err
		}
		if change.Object == nil {
			continue
		}
		uid, generation := change.Object.GetUID(), change.Object.GetGeneration()
		was, known := notifiers[uid]
		if known && (change.Type == watch.Deleted || was.generation != generation) {
			was.stop()
			delete(notifiers, uid)
		}
		if change.Type != watch.Deleted && (!known || was.generation != generation) {
			of, stop := context.WithCancel(ctx)
			notifiers[uid] = notifier{generation, stop}
			watching.Go(func() { tell(of, deployments, change.Object, out) })
		}
	}
	return nil
}

// notifier is one that is being told: its spec's generation, and what stops that.
type notifier struct {
	generation int64
	stop       context.CancelFunc
}

// tell follows one notifier's Deployment until ctx ends.
func tell(ctx context.Context, deployments *dynamic.Resource, notifier *unstructured.Object, out io.Writer) {
	name, _, err := unstructured.Get[string](notifier, "spec", "deployment")
	if err != nil {
		fmt.Fprintln(out, notifier.GetName(), err)
		return
	}
	had := ""
	opts := &dynamic.FollowOptions{FieldSelector: "metadata.name=" + name}
	for change, err := range deployments.In(notifier.GetNamespace()).Follow(ctx, opts) {
		switch {
		case ctx.Err() != nil:
			fmt.Fprintf(out, "%s: no longer watching %s\n", notifier.GetName(), name)
			return
		case err != nil:
			fmt.Fprintln(out, notifier.GetName(), err)
			return
		case change.Type == watch.Deleted:
			had = ""
			continue
		case change.Object == nil:
			continue
		}
		has := images(change.Object)
		if had != "" && has != had {
			fmt.Fprintf(out, "%s: %s went from %s to %s\n", notifier.GetName(), name, had, has)
		}
		had = has
	}
}

// images lists the images of a Deployment's containers.
func images(deployment *unstructured.Object) string {
	containers, _, err := unstructured.Get[[]any](deployment, "spec", "template", "spec", "containers")
	if err != nil {
		return err.Error()
	}
	var all []string
	for i := range containers {
		image, _, err := unstructured.Get[string](deployment, "spec", "template", "spec", "containers", fmt.Sprint(i), "image")
		if err != nil {
			return err.Error()
		}
		all = append(all, image)
	}
	return strings.Join(all, " ")
}
