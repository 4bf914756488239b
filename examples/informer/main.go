// Command informer is the book's example: an informer's cache of pods with an index by node, and a work queue that is
// fed by what changes and emptied by workers, which read the cache and make no request.
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
	"sync"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: informer") }
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
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		return err
	}
	return inform(ctx, pods, os.Stdout)
}

// byNode finds pods by the node that they run on.
func byNode(pod *unstructured.Object) []string {
	node, found, err := unstructured.Get[string](pod, "spec", "nodeName")
	if !found || err != nil {
		return nil
	}
	return []string{node}
}

// inform keeps a cache of pods and works on what changes until ctx ends.
func inform(ctx context.Context, pods *dynamic.Resource, out io.Writer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var busy sync.WaitGroup
	defer busy.Wait()
	objects := cache.New(pods, &cache.Options[unstructured.Object]{
		Indexes: map[string]func(*unstructured.Object) []string{"node": byNode},
	})
	busy.Go(func() { stop(objects.Run(ctx)) })
	if err := objects.Sync(ctx); err != nil {
		return err
	}
	queue := controller.NewQueue[cache.Key](nil)
	busy.Go(func() {
		for change := range objects.Changes(ctx) {
			if change.Object != nil {
				queue.Add(cache.Key{Namespace: change.Object.GetNamespace(), Name: change.Object.GetName()})
			}
		}
	})
	for {
		key, ok := queue.Get(ctx)
		if !ok {
			return context.Cause(ctx)
		}
		report(objects, key, out)
		queue.Done(key)
	}
}

// report is the work: it says where a pod is and how many others are there.
func report(pods *cache.Cache[unstructured.Object], key cache.Key, out io.Writer) {
	pod, found := pods.Get(key.Namespace, key.Name)
	if !found {
		fmt.Fprintf(out, "%s is gone\n", key)
		return
	}
	for _, node := range byNode(pod) {
		beside, err := pods.By("node", node)
		if err != nil {
			fmt.Fprintln(out, err)
			return
		}
		fmt.Fprintf(out, "%s is one of %d on %s\n", key, len(beside), node)
	}
}
