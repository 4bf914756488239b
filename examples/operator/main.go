// Command operator registers the kind Greeting from a file and keeps a ConfigMap for each one: with a finalizer that
// removes the ConfigMap first, and with a status that says which generation it is about.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

//go:embed crd.yaml
var definition []byte

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
	return operate(ctx, client, "", nil)
}

// operate greets in a namespace, or with "" in all, until ctx ends.
func operate(ctx context.Context, client *dynamic.Client, namespace string, opts *controller.Options) error {
	if _, err := controller.Register(ctx, client, definition, nil); err != nil {
		return err
	}
	configMaps, err := client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	g := &greeter{configMaps: configMaps}
	operator := controller.NewOperator(client, opts)
	operator.Watch("example.com", "v1", "greetings", g.handle, namespace)
	return operator.Run(ctx)
}

type greeter struct{ configMaps *dynamic.Resource }

// handle brings one greeting's ConfigMap and status in line with it.
func (g *greeter) handle(ctx context.Context, event controller.ResourceEvent) error {
	if event.Type == watch.Deleted {
		return nil // the finalizer has seen to it
	}
	greeting, deleted, err := controller.Finalize(ctx, event.Resource, event.Object, "example.com/configmap", g.remove)
	if err != nil || deleted {
		return err
	}
	name, _, err := unstructured.Get[string](greeting, "spec", "name")
	if err != nil {
		return err
	}
	text := "Hello, " + name
	configMap := &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": greeting.GetName(), "namespace": greeting.GetNamespace()},
		"data":     map[string]any{"text": text},
	}}
	if _, err := g.configMaps.Apply(ctx, configMap, &metav1.ApplyOptions{FieldManager: "greeter", Force: true}); err != nil {
		return err
	}
	_, err = controller.SetStatus(ctx, event.Resource, greeting, map[string]any{"text": text})
	return err
}

// remove is what must be done before a greeting may go.
func (g *greeter) remove(ctx context.Context, greeting *unstructured.Object) error {
	_, err := g.configMaps.In(greeting.GetNamespace()).Delete(ctx, greeting.GetName(), nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
