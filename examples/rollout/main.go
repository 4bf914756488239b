// Command rollout restarts all Deployments with a label, in every namespace, and waits until their rollouts are complete:
//
//	rollout app=web
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: rollout LABEL=VALUE")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	cfg, err := transport.Load(ctx, nil)
	if err == nil {
		err = restart(ctx, cfg, os.Args[1], os.Stdout)
	}
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func restart(ctx context.Context, cfg *transport.Config, selector string, out io.Writer) error {
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	deployments, err := client.Resource(ctx, "deployments.apps")
	if err != nil {
		return err
	}
	restartedAt := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"example.com/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	progress := func(p dynamic.ForEachProgress) {
		fmt.Fprintf(out, "%d of %d: %s, error: %v\n", p.Done, p.Total, p.Key, p.Err)
	}
	return deployments.AllNamespaces().ForEach(ctx, &metav1.ListOptions{LabelSelector: selector}, &dynamic.ForEachOptions{OnProgress: progress},
		func(ctx context.Context, in *dynamic.Resource, deployment *unstructured.Object) error {
			_, err := in.Patch(ctx, deployment.GetName(), types.MergePatchType, restartedAt, nil)
			if err == nil {
				_, err = in.Wait(ctx, deployment.GetName(), dynamic.Ready())
			}
			return err
		})
}
