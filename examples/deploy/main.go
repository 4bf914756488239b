// Command deploy applies the manifests of a folder as a set, deletes the objects that left the folder since the last run, and waits
// until all are ready:
//
//	deploy web ./manifests
//
// The set is recorded in the Secret web of the kubeconfig's namespace.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured/manifest"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: deploy NAME FOLDER")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	cfg, err := transport.Load(ctx, nil)
	if err == nil {
		err = deploy(ctx, cfg, os.Args[1], os.Args[2], os.Stdout)
	}
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

const timeout = 5 * time.Minute

func deploy(ctx context.Context, cfg *transport.Config, name, folder string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reader := manifest.Reader{Paths: []string{folder}, Recursive: true}
	objects, err := reader.Read(ctx)
	if err != nil {
		return err
	}
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	set := applyset.New(client, applyset.Parent{Namespace: cfg.Namespace, Name: name}, nil)
	_, err = set.Apply(ctx, objects, &applyset.ApplyOptions{OnEvent: func(event applyset.Event) {
		fmt.Fprintln(out, event.Action, event.Object, event.Reason)
	}})
	if err != nil {
		return err
	}
	return set.Wait(ctx, objects, &applyset.WaitOptions{OnProgress: func(object applyset.Reference, result readiness.Result) {
		fmt.Fprintln(out, object, result)
	}})
}
