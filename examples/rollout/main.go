// Command rollout restarts a Deployment, and prints the progress until all its Pods are new and ready: rollout web
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: rollout DEPLOYMENT")
	}
	ctx := context.Background()
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	deployments, err := client.Resource(ctx, "deployments.apps")
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now().Format(time.RFC3339Nano)
	restart := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, now)
	if _, err := deployments.Patch(ctx, os.Args[1], types.MergePatchType, restart, nil); err != nil {
		log.Fatal(err)
	}
	progress := &dynamic.WaitOptions{OnProgress: func(progress dynamic.WaitProgress) { fmt.Println(progress) }}
	if _, err := deployments.WithWaitOptions(progress).Wait(ctx, os.Args[1], dynamic.Ready()); err != nil {
		log.Fatal(err)
	}
}
