// Command informer keeps a cache of pods with an index by node. Changes put keys into a work queue; a worker takes them
// and reads the cache, without further requests.
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

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
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
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		return err
	}
	fmt.Println("waiting for Pods in the namespace", client.Conn().Namespace())
	return watchPods(ctx, pods, os.Stdout)
}

// nodeOf is the index function: it returns the pod's node.
func nodeOf(pod *unstructured.Object) []string {
	node, found, err := unstructured.Get[string](pod, "spec", "nodeName")
	if !found || err != nil {
		return nil
	}
	return []string{node}
}

// watchPods reports each changed pod until ctx ends.
func watchPods(ctx context.Context, pods *dynamic.Resource, out io.Writer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group sync.WaitGroup
	defer group.Wait()
	podCache := cache.New(pods, &cache.Options[unstructured.Object]{
		Indexes: map[string]func(*unstructured.Object) []string{"node": nodeOf},
	})
	group.Go(func() { stop(podCache.Run(ctx)) })
	if err := podCache.WaitForSync(ctx); err != nil {
		return err
	}
	queue := workqueue.New[types.NamespacedName](nil)
	group.Go(func() {
		for change := range podCache.Changes(ctx) {
			if change.Object != nil {
				queue.Add(cache.KeyOf(change.Object))
			}
		}
	})
	for {
		key, ok := queue.Get(ctx)
		if !ok {
			return context.Cause(ctx)
		}
		report(podCache, key, out)
		queue.Done(key)
	}
}

// report prints the node of a pod and the node's number of pods.
func report(pods *cache.Cache[unstructured.Object], key types.NamespacedName, out io.Writer) {
	pod, found := pods.Get(key.Namespace, key.Name)
	if !found {
		fmt.Fprintf(out, "%s was deleted\n", key)
		return
	}
	for _, node := range nodeOf(pod) {
		neighbors, err := pods.ByIndex("node", node)
		if err != nil {
			fmt.Fprintln(out, err)
			return
		}
		fmt.Fprintf(out, "%s is one of %d on %s\n", key, len(neighbors), node)
	}
}
